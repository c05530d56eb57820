//! From what a program says of its server to the configuration of that server.
//!
//! Invariant: everything that the program has set is taken over, named as having no effect, or refused
//! with a reason; nothing is lost without a word. An option of Swoole that is neither taken over nor known
//! to restrict nothing is refused.

use crate::description::{Description, Port, is_number, is_true};
use crate::private_dir::PrivateDir;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The configuration file that nobody has to write, and what is not part of it.
#[derive(Debug)]
pub struct Configuration {
    /// As `outboard.toml` has it.
    pub text: String,
    /// Where the server writes its process id.
    pub pid_file: Option<PathBuf>,
    /// Where the output goes in the background.
    pub log_file: Option<PathBuf>,
    /// Options that have no effect.
    without_effect: Vec<String>,
    /// Addresses, and the other keys of their tables.
    listen: Vec<(String, String)>,
    general: String,
}

/// The mode of a server whose workers read from the sockets.
const SWOOLE_BASE: u64 = 1;

const UDP: u32 = 2;
const TCP6: u32 = 3;
const UDP6: u32 = 4;
const UNIX_STREAM: u32 = 5;
const UNIX_DATAGRAM: u32 = 6;

/// Options that are taken over here, or by the program's own side (`Server.php`).
const TAKEN_OVER: [&str; 53] = [
    "worker_num",
    "task_worker_num",
    "max_request",
    "package_max_length",
    "upload_max_filesize",
    "http_parse_cookie",
    "http_parse_files",
    "http_parse_post",
    "document_root",
    "enable_static_handler",
    "http_compression",
    "compression_min_length",
    "ssl_cert_file",
    "ssl_key_file",
    "open_http2_protocol",
    "open_http_protocol",
    "daemonize",
    "pid_file",
    "log_file",
    "user",
    "group",
    "upload_tmp_dir",
    "enable_coroutine",
    "max_coroutine",
    "max_coro_num",
    "max_concurrency",
    "worker_max_concurrency",
    "task_enable_coroutine",
    "task_use_object",
    "max_wait_time",
    "heartbeat_idle_time",
    "heartbeat_check_interval",
    "dispatch_mode",
    "backlog",
    "max_conn",
    "max_connection",
    "open_eof_check",
    "open_eof_split",
    "package_eof",
    "open_length_check",
    "package_length_func",
    "package_length_type",
    "package_length_offset",
    "package_body_offset",
    "open_tcp_nodelay",
    "buffer_output_size",
    "output_buffer_size",
    "buffer_high_watermark",
    "buffer_low_watermark",
    "enable_delay_receive",
    "enable_unsafe_event",
    "event_object",
    "send_yield",
];

/// Those of Swoole that restrict nothing, so that a server without them is as closed as with them.
const UNRESTRICTIVE: &str = "admin_server aio_core_worker_num aio_max_idle_time aio_max_wait_time aio_worker_num \
    body_decompression bootstrap buffer_input_size c_stack_size compression_level compression_types \
    cpu_affinity_ignore deadlock_check_depth deadlock_check_disable_trace deadlock_check_limit debug_mode \
    discard_timeout_request display_errors dns_cache_capacity dns_cache_expire dns_cache_refresh_time \
    dns_lookup_random dns_server enable_deadlock_check enable_kqueue enable_message_bus \
    enable_preemptive_scheduler enable_reuse_port enable_signalfd exit_condition hook_flags \
    http2_enable_push http2_header_table_size http2_init_window_size http2_max_frame_size http_autoindex \
    http_compression_level http_compression_min_length http_compression_types http_gzip_level \
    http_index_files init_arguments input_buffer_size iouring_entries iouring_flag iouring_workers \
    kernel_socket_recv_buffer_size kernel_socket_send_buffer_size log_date_format \
    log_date_with_microseconds log_level log_rotation lowercase_header max_request_grace max_thread_num \
    message_queue_key min_thread_num open_cpu_affinity open_tcp_keepalive open_websocket_close_frame \
    open_websocket_ping_frame open_websocket_pong_frame reactor_num reload_async single_thread socket_buffer_size \
    ssl_allow_self_signed ssl_compress ssl_dhparam ssl_disable_compression ssl_grease \
    ssl_prefer_server_ciphers stack_size start_session_id stats_file stats_timer_interval task_ipc_mode task_max_request \
    task_object task_tmpdir tcp_defer_accept tcp_fastopen tcp_keepcount tcp_keepidle tcp_keepinterval \
    tcp_user_timeout thread_num trace_flags use_async_resolver wait_signal websocket_compression \
    websocket_mask websocket_subprotocol";

/// Those that a port for HTTP can have for itself.
const OF_HTTP_PORTS: [&str; 6] = [
    "ssl_cert_file",
    "ssl_key_file",
    "open_http_protocol",
    "open_http2_protocol",
    "open_tcp_nodelay",
    "backlog",
];

/// Those taken over that limit by a number.
const LIMITS: [&str; 14] = [
    "worker_num",
    "task_worker_num",
    "max_request",
    "max_coroutine",
    "max_coro_num",
    "max_concurrency",
    "worker_max_concurrency",
    "max_wait_time",
    "max_conn",
    "max_connection",
    "package_max_length",
    "upload_max_filesize",
    "heartbeat_idle_time",
    "heartbeat_check_interval",
];

/// Maximum requests of a worker at a time.
const CONCURRENCY_MAX: u64 = 1000;
/// Maximum of `limits.connections`.
const CONNECTIONS_MAX: u64 = 1_000_000;
/// Default of `package_max_length`.
const PACKAGE_BYTES: u64 = 2 << 20;

impl Configuration {
    /// The configuration of what the program describes.
    ///
    /// # Errors
    /// The server is of a kind that cannot be run, and what to do about it.
    pub fn of(
        description: &Description,
        script: &Path,
        arguments: &[String],
        directory: &PrivateDir,
        user: Option<String>,
    ) -> Result<Self, String> {
        check_kind(description)?;
        check_options(description)?;
        let listen = description
            .ports
            .iter()
            .enumerate()
            .map(|(index, port)| Ok((port.address(), listener(index, port, description)?)))
            .collect::<Result<Vec<_>, String>>()?;
        let mut general = String::new();
        let relative = |path: &str| script_relative(path);
        let mut log_file = description.text("log_file").map(relative);
        if let Some(user) = &user {
            let _ = writeln!(general, "user = {}", quoted(user));
        }
        if let Some(group) = description.text("group").filter(|_| user.is_some()) {
            let _ = writeln!(general, "group = {}", quoted(group));
        }
        if let Some(seconds) = description.number("max_wait_time") {
            let _ = writeln!(general, "drain_timeout = {seconds}");
        }
        general.push_str("[log.access]\npath = \"off\"\n");
        match &log_file {
            Some(path) => {
                let _ = writeln!(general, "[log.error]\npath = {}", quoted_path(path));
            }
            None => general.push_str("[log.error]\npath = \"stderr\"\n"),
        }
        if let Some(backlog) = description.number("backlog").filter(|backlog| *backlog > 0) {
            let _ = writeln!(general, "[io]\nbacklog = {}", backlog.min(65535));
        }
        general.push_str(&limits(description));
        general.push_str(&app(description, script, arguments, directory));
        if description.is_on("daemonize") && log_file.is_none() {
            log_file = Some(PathBuf::from("/dev/null"));
        }
        let mut configuration = Self {
            text: String::new(),
            pid_file: description.text("pid_file").map(relative),
            log_file,
            without_effect: without_effect(description),
            listen,
            general,
        };
        configuration.write();
        Ok(configuration)
    }

    /// Replaces the address of the program's server, and those of its other ports for HTTP.
    pub fn set_listen(&mut self, address: Option<&str>) {
        if let Some(address) = address {
            let (_, keys) = self.listen.remove(0);
            self.listen.retain(|(_, keys)| keys.contains("program_port"));
            let is_http = !keys.contains("program_port");
            let keys = if is_http { String::new() } else { keys };
            self.listen.insert(0, (address.to_owned(), keys));
            self.write();
        }
    }

    /// Adds settings of php.ini.
    pub fn set_ini(&mut self, ini: &[(String, String)]) {
        if ini.is_empty() {
            return;
        }
        let lines =
            ini.iter().map(|(name, value)| format!("{} = {}\n", quoted(name), quoted(value)));
        let _ = write!(self.general, "[app.run.php.ini]\n{}", lines.collect::<String>());
        self.write();
    }

    fn write(&mut self) {
        // Tables of an array come after the keys of the file itself.
        let (keys, tables) = self.general.split_at(self.general.find('[').unwrap_or(0));
        let listen = self.listen.iter().map(|(address, keys)| {
            let address = quoted(address);
            format!("[[listen]]\naddress = {address}\n{keys}")
        });
        self.text = format!("{keys}{}{tables}", listen.collect::<String>());
    }

    /// The message about options without effect.
    pub fn notice(&self) -> Option<String> {
        let names = self.without_effect.join(", ");
        (!names.is_empty()).then(|| format!("note: these options have no effect here: {names}"))
    }
}

/// The table of limits of connections, if the program sets any.
fn limits(description: &Description) -> String {
    let mut limits = String::new();
    let checks = description.number("heartbeat_check_interval").map(|interval| interval * 2);
    let idle = description.number("heartbeat_idle_time").or(checks);
    if let Some(seconds) = idle.filter(|time| *time > 0) {
        let _ = writeln!(limits, "idle_timeout = {seconds}");
    }
    // Further raw connections are closed instead of waiting (`Server.php`).
    let is_http = description.ports.iter().any(|port| port.http);
    let most = description.number("max_connection").or_else(|| description.number("max_conn"));
    if let Some(most) = most.filter(|most| *most > 0 && (is_http || *most > 16_384)) {
        let _ = writeln!(limits, "connections = {}", most.min(CONNECTIONS_MAX));
    }
    if limits.is_empty() { limits } else { format!("[limits]\n{limits}") }
}

/// As Swoole resolves it: from the directory that the program was started in.
fn script_relative(path: &str) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path))
}

fn check_kind(description: &Description) -> Result<(), String> {
    let unsupported = match description.class.as_str() {
        "websocket" => "Swoole\\WebSocket\\Server",
        "redis" => "Swoole\\Redis\\Server",
        _ => "",
    };
    if !unsupported.is_empty() {
        return Err(format!(
            "the program starts a {unsupported}, and only Swoole\\Server and Swoole\\Http\\Server \
             can be run yet"
        ));
    }
    let is_http = description.ports.iter().any(|port| port.http);
    if is_http && !description.has_request_handler() {
        return Err("the program's server has no callback for the event \"request\"".to_owned());
    }
    match description.ports.iter().find(|port| !port.http && !port.receives) {
        Some(port) => {
            let event = if port.is_datagram() { "packet" } else { "receive" };
            let Port { host, port, .. } = port;
            Err(format!(
                "the program's port {host}:{port} has no callback for the event \"{event}\""
            ))
        }
        None => Ok(()),
    }
}

/// Refuses options that may restrict the server and that nothing here honors.
fn check_options(description: &Description) -> Result<(), String> {
    let has_tls = description.ports.iter().any(|port| port.ssl);
    let is_refused = |name: &String, value: &Value, honored: &[&str]| {
        let is_unrestrictive = UNRESTRICTIVE.split_ascii_whitespace().any(|known| known == name)
            || description.unknown.contains(name)
            || name.starts_with("ssl_") && !has_tls;
        let is_honored = honored.contains(&name.as_str());
        let is_understood = !LIMITS.contains(&name.as_str()) || is_number(value);
        !(is_honored && is_understood || is_unrestrictive || !is_honored && !is_true(value))
    };
    let of_server = description.settings.iter();
    let of_server = of_server.filter(|(name, value)| is_refused(name, value, &TAKEN_OVER));
    let of_ports = description.ports.iter().flat_map(|port| {
        let honored: &[&str] = if port.http { &OF_HTTP_PORTS } else { &TAKEN_OVER };
        let own = port.settings.iter();
        let own = own.filter(|(name, value)| description.settings.get(*name) != Some(*value));
        own.filter(|(name, value)| is_refused(name, value, honored)).collect::<Vec<_>>()
    });
    let names: BTreeSet<&str> = of_server.chain(of_ports).map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        return Err(format!(
            "the program's server may be restricted by options that cannot be honored, at least not with \
             these values or for one port alone: {}. Without them the server starts",
            Vec::from_iter(names).join(", ")
        ));
    }
    Ok(())
}

/// The keys of a `[[listen]]` table without its address.
fn listener(index: usize, port: &Port, description: &Description) -> Result<String, String> {
    let setting = |name: &str| port.settings.get(name).or_else(|| description.settings.get(name));
    let mut table = String::new();
    if !port.http {
        let protocol = if port.is_datagram() { "datagram" } else { "stream" };
        let _ = write!(table, "protocol = \"{protocol}\"\napp = \"run\"\nprogram_port = {index}\n");
    }
    if port.ssl {
        let file = |name: &str| {
            setting(name)
                .and_then(Value::as_str)
                .map(script_relative)
                .ok_or_else(|| format!("{} has SWOOLE_SSL, but no {name} is set", port.address()))
        };
        let (certificate, key) = (file("ssl_cert_file")?, file("ssl_key_file")?);
        let _ = writeln!(
            table,
            "[[listen.tls]]\ncertificate = {}\nkey = {}",
            quoted_path(&certificate),
            quoted_path(&key)
        );
    }
    Ok(table)
}

impl Port {
    /// As `[[listen]]` has it.
    fn address(&self) -> String {
        match self.kind {
            UNIX_STREAM | UNIX_DATAGRAM => {
                format!("unix:{}", script_relative(&self.host).display())
            }
            TCP6 | UDP6 => format!("[{}]:{}", self.host, self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
    }

    fn is_datagram(&self) -> bool {
        [UDP, UDP6, UNIX_DATAGRAM].contains(&self.kind)
    }
}

/// The tables of the only app.
fn app(
    description: &Description,
    script: &Path,
    arguments: &[String],
    directory: &PrivateDir,
) -> String {
    let is_static = description.is_on("enable_static_handler");
    let root = match description.text("document_root").filter(|_| is_static) {
        Some(path) => script_relative(path),
        None => directory.path("root"),
    };
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let workers = description.number("worker_num").unwrap_or(processors).max(1);
    let is_concurrent = description.settings.get("enable_coroutine").is_none_or(is_true);
    let of_worker = ["worker_max_concurrency", "max_coroutine", "max_coro_num"];
    let of_worker = of_worker.iter().filter_map(|name| description.number(name));
    let of_all = description.number("max_concurrency").filter(|most| *most > 0);
    // Server.php does the same for messages.
    let wanted = of_worker.filter(|most| *most > 0).chain(of_all.map(|most| most / workers)).min();
    let concurrency =
        if is_concurrent { wanted.unwrap_or(CONCURRENCY_MAX).clamp(1, CONCURRENCY_MAX) } else { 1 };
    let compresses = description.settings.get("http_compression").is_none_or(is_true);
    let body_bytes = description.number("package_max_length").unwrap_or(PACKAGE_BYTES);
    let max_requests = description.number("max_request").unwrap_or(0);
    // In this mode the process that runs PHP reads from the sockets.
    let direct = description.class == "http" && description.mode == SWOOLE_BASE;
    let arguments: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
    let mut text = format!(
        "[app.run]\nroot = {root}\nmode = \"worker\"\nindex = []\ncompress = {compresses}\n\
         [app.run.limits]\nbody = {body_bytes}\nrequest_deadline = \"24h\"\n\
         [app.run.worker]\nscript = {script}\nstarts_server = true\ndirect = {direct}\n\
         concurrency = {concurrency}\narguments = [{arguments}]\n\
         [app.run.pool]\nmin = {workers}\nmax = {workers}\nmin_idle = 0\nloopback_slots = 0\n\
         max_requests = {max_requests}\nmax_worker_memory = 0\nqueue_length = 100000\n\
         queue_timeout = \"60s\"\n",
        root = quoted_path(&root),
        script = quoted_path(script),
        arguments = arguments.join(", "),
    );
    if let Some(tasks) = description.number("task_worker_num").filter(|count| *count > 0) {
        let concurrency = if description.is_on("task_enable_coroutine") { 100 } else { 1 };
        let _ = write!(
            text,
            "[app.run.tasks]\nworkers = {tasks}\nconcurrency = {concurrency}\nmax_retries = 0\n\
             timeout = \"24h\"\n"
        );
    }
    text + &php(directory)
}

/// The program finds the environment that it was started in, and its server.
fn php(directory: &PrivateDir) -> String {
    let passed: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| value.to_str().and(name.into_string().ok()))
        .filter(|name| name != crate::DETACHED && is_plain(name))
        .map(|name| quoted(&name))
        .collect();
    format!(
        "[app.run.php]\npass_env = [{}]\n[app.run.php.env]\n\
         OUTBOARD_SWOOLE_MEMORY = {}\nOUTBOARD_SWOOLE_CONTROL = {}\nOUTBOARD_SWOOLE_MASTER = \"{}\"\n",
        passed.join(", "),
        quoted_path(&directory.path("memory")),
        quoted_path(&directory.path("control")),
        std::process::id()
    )
}

/// A name that `pass_env` takes.
fn is_plain(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn without_effect(description: &Description) -> Vec<String> {
    let of_ports = description.ports.iter().flat_map(|port| port.settings.keys());
    let names: BTreeSet<&String> = description.settings.keys().chain(of_ports).collect();
    names.into_iter().filter(|name| !TAKEN_OVER.contains(&name.as_str())).cloned().collect()
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests;
