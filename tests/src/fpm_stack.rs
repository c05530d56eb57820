//! The reference: nginx and php-fpm from Debian's packages, configured as Debian configures them.

use crate::site::{ini_scan_dir, php_user};
use crate::{App, Child, Launch, Protocol, Scratch, Site};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

/// A running nginx + php-fpm; they talk over a Unix socket.
#[derive(Debug)]
pub struct FpmStack {
    address: SocketAddr,
    nginx: Child,
    fpm: Child,
    _scratch: Scratch,
}

impl FpmStack {
    /// Starts both and returns when both answer.
    pub fn start(app: &App) -> FpmStack {
        let scratch = Scratch::new("fpm");
        let socket = scratch.path().join("fpm.sock");
        let fpm = start_fpm(app, &scratch, &socket);
        // Between asking the kernel for a free port and nginx taking it, another may have been faster.
        for _ in 0..10 {
            let port = free_port();
            let configuration = nginx_configuration(app, &scratch, &socket, port);
            let nginx = Launch::new("/usr/sbin/nginx")
                .arg("-e")
                .arg("stderr")
                .arg("-c")
                .arg(scratch.file("nginx.conf", configuration))
                .start();
            match nginx.wait_for(|line| line.contains("start worker process ").then_some(())) {
                Ok(()) => {
                    let address = (Ipv4Addr::LOCALHOST, port).into();
                    return FpmStack { address, nginx, fpm, _scratch: scratch };
                }
                Err(output) if output.contains("Address already in use") => continue,
                Err(output) => panic!("nginx does not start: {output}"),
            }
        }
        panic!("nginx found every port in use");
    }
}

impl Site for FpmStack {
    fn name(&self) -> &str {
        "nginx + php-fpm"
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    fn log(&self) -> String {
        format!("{}{}", self.nginx.output(), self.fpm.output())
    }
}

fn free_port() -> u16 {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has free ports");
    listener.local_addr().expect("a bound socket has an address").port()
}

fn start_fpm(app: &App, scratch: &Scratch, socket: &Path) -> Child {
    let ini = app.php_ini(&scratch.folder("uploads"), &scratch.folder("sessions"));
    let mut pool = format!(
        "[global]\nerror_log = /proc/self/fd/2\ndaemonize = no\n\
         [www]\nlisten = {}\nlisten.mode = 0666\npm = static\npm.max_children = {}\n\
         catch_workers_output = yes\ndecorate_workers_output = no\n",
        socket.display(),
        app.workers,
    );
    if let Some(user) = php_user() {
        pool.push_str(&format!("user = {user}\ngroup = {user}\n"));
    }
    for (name, value) in &app.env {
        pool.push_str(&format!("env[{name}] = \"{value}\"\n"));
    }
    let fpm = Launch::new("/usr/sbin/php-fpm8.2")
        .env("PHP_INI_SCAN_DIR", ini_scan_dir())
        .arg("--nodaemonize")
        .arg("--php-ini")
        .arg(scratch.file("php.ini", ini))
        .arg("--fpm-config")
        .arg(scratch.file("fpm.conf", pool))
        .start();
    fpm.wait_for(|line| line.contains("ready to handle connections").then_some(()))
        .unwrap_or_else(|output| panic!("php-fpm does not start: {output}"));
    fpm
}

/// Debian's `sites-available/default` and `snippets/fastcgi-php.conf`, with one exception:
/// `HTTP_HOST` is what the client sent, port included. Debian's `$host` drops the port, and
/// no application finds its way home on an ephemeral one without it.
fn nginx_configuration(app: &App, scratch: &Scratch, socket: &Path, port: u16) -> String {
    let scratch_path = scratch.path().display();
    let user = php_user().map(|user| format!("user {user};")).unwrap_or_default();
    let mut locations = String::new();
    for (prefix, folder) in &app.accel {
        locations
            .push_str(&format!("location {prefix} {{ internal; alias {}/; }}\n", folder.display()));
    }
    for prefix in &app.deny {
        locations.push_str(&format!("location ^~ {prefix} {{ return 404; }}\n"));
    }
    format!(
        r#"daemon off; worker_processes 1; pid {scratch_path}/nginx.pid; error_log stderr notice; {user}
events {{ worker_connections 1024; }}
http {{
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  access_log off; sendfile on; tcp_nopush on; types_hash_max_size 2048;
  client_max_body_size 64m;
  client_body_temp_path {scratch_path}/body; fastcgi_temp_path {scratch_path}/fastcgi;
  proxy_temp_path {scratch_path}/proxy; uwsgi_temp_path {scratch_path}/uwsgi; scgi_temp_path {scratch_path}/scgi;
  server {{
    listen 127.0.0.1:{port};
    server_name 127.0.0.1;
    root {root};
    index index.php index.html;
    location ~ /\.(?!well-known) {{ return 404; }}
    {locations}
    location / {{ try_files $uri $uri/ /index.php$is_args$args; }}
    location ~ [^/]\.php(/|$) {{
      fastcgi_split_path_info ^(.+?\.php)(/.*)$;
      try_files $fastcgi_script_name =404;
      set $path_info $fastcgi_path_info;
      fastcgi_param PATH_INFO $path_info;
      fastcgi_index index.php;
      include /etc/nginx/fastcgi_params;
      fastcgi_param HTTP_HOST $http_host;
      {protocol}
      fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
      fastcgi_read_timeout 60s;
      fastcgi_pass unix:{socket};
    }}
  }}
}}
"#,
        protocol = of_the_run(),
        root = app.root.display(),
        socket = socket.display(),
    )
}

/// What scripts see of the protocol by which the subject of the comparison is reached.
fn of_the_run() -> String {
    let protocol = Protocol::of_run();
    let https = if protocol.scheme() == "https" { "on" } else { "" };
    if protocol == Protocol::Http1 {
        return String::new();
    }
    format!(
        "fastcgi_param SERVER_PROTOCOL HTTP/{}; fastcgi_param HTTPS {https:?} if_not_empty; \
         fastcgi_param REQUEST_SCHEME {};",
        protocol.version(),
        protocol.scheme()
    )
}
