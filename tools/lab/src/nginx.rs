//! nginx stacks: in front of php-fpm, with Lua or a page cache, for static files, and with a
//! response of its own.
//!
//! All share one base configuration, an expert's: keep-alive without limits, no access log, one worker
//! per core with a listening socket of its own (`reuseport`), `sendfile`, heads and files in one packet
//! (`tcp_nopush`, about 15 % cheaper), open files kept (`open_file_cache`). Each is an instance of its own
//! on its own port.

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::fpm::{self, Pool};
use crate::group::Group;
use crate::lab::Lab;
use crate::request_spec::HOST;
use crate::stack::Stack;
use crate::system::{free_address, is_root, program, write};
use crate::tls_listener::TlsListener;

/// The name of nginx with php-fpm in every table.
pub const FPM: &str = "nginx+php-fpm";
/// The stack whose nginx caches php-fpm's responses.
pub const CACHING: &str = "nginx fastcgi_cache";

/// The name of nginx with Lua and php-fpm in every table.
pub const LUA: &str = "nginx+lua+php-fpm";

/// The stack whose nginx responds with two bytes itself.
pub const RETURN: &str = "nginx-return";

/// nginx in front of php-fpm over a Unix socket, as Debian's documentation sets it up.
pub fn with_fpm(lab: &mut Lab, root: &Path) -> Result<Stack> {
    let pool = Pool::usual(lab);
    with_pool(lab, FPM, root, pool)
}

/// The same with this number of php-fpm children.
pub fn with_fpm_children(lab: &mut Lab, root: &Path, children: usize) -> Result<Stack> {
    with_pool(lab, FPM, root, Pool::of(children))
}

/// The same without opcache: every request compiles what it includes.
pub fn with_fpm_uncached(lab: &mut Lab, root: &Path) -> Result<Stack> {
    let pool = Pool { ini: &[("opcache.enable", "0")], ..Pool::usual(lab) };
    with_pool(lab, "php-fpm, no opcache", root, pool)
}

/// The same under another name, for a server in front of it.
pub fn behind(lab: &mut Lab, name: &'static str, root: &Path) -> Result<Stack> {
    let pool = Pool::usual(lab);
    with_pool(lab, name, root, pool)
}

fn with_pool(lab: &mut Lab, name: &'static str, root: &Path, pool: Pool) -> Result<Stack> {
    let mut group = Group::new(lab, name)?;
    let socket = fpm::start(lab, &mut group, name, pool)?;
    start(lab, group, name, &front_controller(root, &socket, ""))
}

/// nginx that caches php-fpm's responses, as its documentation describes it.
pub fn with_fastcgi_cache(lab: &mut Lab, root: &Path) -> Result<Stack> {
    let name = CACHING;
    let mut group = Group::new(lab, name)?;
    let pool = Pool::usual(lab);
    let socket = fpm::start(lab, &mut group, name, pool)?;
    let cache = "
      fastcgi_cache pages;
      fastcgi_cache_key $scheme$request_method$host$request_uri;
      fastcgi_cache_valid 200 10m;";
    let server = front_controller(root, &socket, cache);
    let directory = lab.directory(name)?.join("pages");
    let http = format!("fastcgi_cache_path {} keys_zone=pages:10m;", directory.display());
    start_with(lab, group, name, Frame { program: None, main: "", http: &http, server: &server })
}

/// nginx that composes `/search` in Lua: a script of php-fpm, a fetch over pooled connections,
/// another script.
pub fn with_lua(lab: &mut Lab, root: &Path, script: &Path, children: usize) -> Result<Stack> {
    let name = LUA;
    let modules = "/usr/lib/nginx/modules";
    program(&[&format!("{modules}/ngx_http_lua_module.so")], "libnginx-mod-http-lua")?;
    program(&["/usr/share/lua/5.1/resty/core.lua"], "lua-resty-core")?;
    let mut group = Group::new(lab, name)?;
    let socket = fpm::start(lab, &mut group, name, Pool::of(children))?;
    let server = format!(
        "{}
    location = /search {{ default_type text/html; content_by_lua_file {}; }}",
        php_location(root, &socket, ""),
        script.display()
    );
    let main = format!(
        "load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;"
    );
    start_with(lab, group, name, Frame { program: None, main: &main, http: "", server: &server })
}

/// PHP scripts by their path, and index.php for everything else.
fn front_controller(root: &Path, socket: &Path, php: &str) -> String {
    format!(
        "{}
    location / {{ try_files $uri $uri/ /index.php?$args; }}",
        php_location(root, socket, php)
    )
}

fn php_location(root: &Path, socket: &Path, further: &str) -> String {
    format!(
        "root {};
    index index.php;
    location ~ \\.php$ {{
      include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
      fastcgi_pass unix:{};{further}
    }}",
        root.display(),
        socket.display()
    )
}

/// nginx serving files, over TLS and HTTP/2 as well: sessions are resumed from a cache of all workers.
pub fn with_files(lab: &mut Lab, root: &Path, tls: &TlsListener) -> Result<Stack> {
    let name = "nginx-files";
    let group = Group::new(lab, name)?;
    let listen = format!("listen {} ssl http2 reuseport backlog=4096;", tls.address);
    start(lab, group, name, &files(root, tls, &listen))
}

/// The same by a program that has HTTP/3.
pub fn with_http3_files(
    lab: &mut Lab,
    program: &Path,
    root: &Path,
    tls: &TlsListener,
) -> Result<Stack> {
    let name = "nginx-http3";
    let group = Group::new(lab, name)?;
    let address = tls.address;
    let listen = format!(
        "listen {address} ssl reuseport backlog=4096;
    listen {address} quic reuseport;
    http2 on;
    quic_gso on;
    http3_max_concurrent_streams 1000;"
    );
    let server = files(root, tls, &listen);
    start_with(
        lab,
        group,
        name,
        Frame { program: Some(program), main: "", http: "", server: &server },
    )
}

fn files(root: &Path, tls: &TlsListener, listen: &str) -> String {
    format!(
        "root {root};
    {listen}
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:tls:10m;
    ssl_session_timeout 1h;",
        root = root.display(),
        certificate = tls.certificate.display(),
        key = tls.key.display(),
    )
}

/// nginx responding with two bytes itself: its cost of HTTP alone.
pub fn with_return(lab: &mut Lab) -> Result<Stack> {
    let name = RETURN;
    let group = Group::new(lab, name)?;
    start(lab, group, name, "location / { return 200 'ok'; }")
}

fn start(lab: &mut Lab, group: Group, name: &'static str, server: &str) -> Result<Stack> {
    start_with(lab, group, name, Frame { program: None, main: "", http: "", server })
}

/// The parts of an instance's configuration beyond the shared base.
struct Frame<'a> {
    /// Another program than Debian's.
    program: Option<&'a Path>,
    /// Directives outside of any block.
    main: &'a str,
    /// Directives of the http block.
    http: &'a str,
    /// Directives of its one server.
    server: &'a str,
}

fn start_with(
    lab: &mut Lab,
    mut group: Group,
    name: &'static str,
    Frame { program: own, main, http, server }: Frame<'_>,
) -> Result<Stack> {
    let binary = match own {
        Some(own) => own.to_owned(),
        None => program(&["/usr/sbin/nginx"], "nginx-light")?,
    };
    let directory = lab.directory(name)?;
    let address = free_address()?;
    let user = if is_root() { "user www-data;" } else { "" };
    let config = format!(
        "{main}
{user}
daemon off;
worker_processes {cores};
pid {directory}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 16384; }}
http {{
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  access_log off;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=10000 inactive=60s;
  open_file_cache_valid 30s;
  open_file_cache_errors on;
  keepalive_timeout 3600s;
  keepalive_requests 1000000000;
  client_body_temp_path {directory}/body;
  fastcgi_temp_path {directory}/fastcgi;
  proxy_temp_path {directory}/proxy;
  scgi_temp_path {directory}/scgi;
  uwsgi_temp_path {directory}/uwsgi;
  {http}
  server {{
    listen {address} reuseport backlog=4096;
    server_name {HOST};
    {server}
  }}
}}
",
        cores = lab.cores,
        directory = directory.display(),
    );
    let file = directory.join("nginx.conf");
    write(&file, config)?;
    let mut command = Command::new(binary);
    command.arg("-e").arg("stderr").arg("-p").arg(&directory).arg("-c").arg(&file);
    group.start(lab, &command)?;
    Stack { name, address, group }.await_response()
}
