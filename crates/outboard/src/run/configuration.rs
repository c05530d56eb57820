//! From what a program says of its server to the configuration of that server.
//!
//! Invariant: everything that the program has set is taken over, named as having no effect, or refused
//! with a reason; nothing is lost without a word.

use super::description::{Description, Port, is_true};
use super::private_dir::PrivateDir;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The configuration file that nobody has to write, and what is not part of it.
#[derive(Debug)]
pub(super) struct Configuration {
    pub(super) text: String,
    pub(super) pid_file: Option<PathBuf>,
    pub(super) log_file: Option<PathBuf>,
    /// Options that have no effect.
    without_effect: Vec<String>,
    /// Addresses, and the other keys of their tables.
    listen: Vec<(String, String)>,
    general: String,
}

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
    "task_max_request",
    "max_request_grace",
    "package_max_length",
    "upload_max_filesize",
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
    "reload_async",
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

/// Maximum requests of a worker at a time.
const CONCURRENCY_MAX: u64 = 1000;
/// Default and maximum of `limits.connections`.
const CONNECTIONS_DEFAULT: u64 = 16_384;
const CONNECTIONS_MAX: u64 = 1_000_000;
/// Default of `package_max_length`.
const PACKAGE_BYTES: u64 = 2 << 20;

impl Configuration {
    /// # Errors
    /// The server is of a kind that cannot be run, and what to do about it.
    pub(super) fn of(
        description: &Description,
        script: &Path,
        arguments: &[String],
        directory: &PrivateDir,
        user: Option<String>,
    ) -> Result<Self, String> {
        check_kind(description)?;
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
    pub(super) fn set_listen(&mut self, address: Option<&str>) {
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
    pub(super) fn set_ini(&mut self, ini: &[(String, String)]) {
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
    pub(super) fn notice(&self) -> Option<String> {
        let names = self.without_effect.join(", ");
        (!names.is_empty()).then(|| format!("note: these options have no effect here: {names}"))
    }
}

/// The table of limits of connections, if the program sets any.
fn limits(description: &Description) -> String {
    let mut limits = String::new();
    if let Some(seconds) = description.number("heartbeat_idle_time").filter(|time| *time > 0) {
        let _ = writeln!(limits, "idle_timeout = {seconds}");
    }
    // Fewer are a matter of the raw connections alone.
    let most = description.number("max_connection").or_else(|| description.number("max_conn"));
    if let Some(most) = most.filter(|most| *most > CONNECTIONS_DEFAULT) {
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
    let wanted = ["worker_max_concurrency", "max_concurrency", "max_coroutine", "max_coro_num"];
    let wanted = wanted.iter().find_map(|name| description.number(name));
    let concurrency =
        if is_concurrent { wanted.unwrap_or(CONCURRENCY_MAX).clamp(1, CONCURRENCY_MAX) } else { 1 };
    let compresses = description.settings.get("http_compression").is_none_or(is_true);
    let body_bytes = description.number("package_max_length").unwrap_or(PACKAGE_BYTES);
    let max_requests = description.number("max_request").unwrap_or(0);
    let arguments: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
    let mut text = format!(
        "[app.run]\nroot = {root}\nmode = \"worker\"\nindex = []\ncompress = {compresses}\n\
         [app.run.limits]\nbody = {body_bytes}\nrequest_deadline = \"24h\"\n\
         [app.run.worker]\nscript = {script}\nswoole = true\nconcurrency = {concurrency}\n\
         arguments = [{arguments}]\n\
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
        .filter(|name| name != super::DETACHED && is_plain(name))
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
