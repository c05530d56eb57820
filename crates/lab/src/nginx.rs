//! nginx stacks: in front of php-fpm, with Lua beside it, for static files, and answering by
//! itself.
//!
//! All share one configuration frame; keep-alive without limits, no access log, one worker per
//! core. Each is an instance of its own on a port of its own.

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::fpm;
use crate::group::Group;
use crate::http::HOST;
use crate::lab::{Lab, free_address, is_root, program, write};
use crate::stack::Stack;

/// nginx in front of php-fpm over a Unix socket, as Debian's documentation sets it up.
pub fn with_fpm(lab: &mut Lab, root: &Path) -> Result<Stack> {
    let children = lab.php_processes();
    with_fpm_children(lab, root, children)
}

/// The same with so many php-fpm children.
pub fn with_fpm_children(lab: &mut Lab, root: &Path, children: usize) -> Result<Stack> {
    let name = "nginx+php-fpm";
    let mut group = Group::new(lab, name)?;
    let socket = fpm::start(lab, &mut group, name, children)?;
    let server = format!(
        "{}
    location / {{ try_files $uri $uri/ /index.php?$args; }}",
        php_location(root, &socket)
    );
    start(lab, group, name, &server)
}

/// nginx that stitches `/search` together in Lua: a script of php-fpm, a fetch over pooled
/// connections, another script.
pub fn with_lua(lab: &mut Lab, root: &Path, script: &Path, children: usize) -> Result<Stack> {
    let name = "nginx+lua+php-fpm";
    let modules = "/usr/lib/nginx/modules";
    program(&[&format!("{modules}/ngx_http_lua_module.so")], "libnginx-mod-http-lua")?;
    program(&["/usr/share/lua/5.1/resty/core.lua"], "lua-resty-core")?;
    let mut group = Group::new(lab, name)?;
    let socket = fpm::start(lab, &mut group, name, children)?;
    let server = format!(
        "{}
    location = /search {{ default_type text/html; content_by_lua_file {}; }}",
        php_location(root, &socket),
        script.display()
    );
    let main = format!(
        "load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;"
    );
    start_with(lab, group, name, &main, &server)
}

fn php_location(root: &Path, socket: &Path) -> String {
    format!(
        "root {};
    index index.php;
    location ~ \\.php$ {{
      include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
      fastcgi_pass unix:{};
    }}",
        root.display(),
        socket.display()
    )
}

/// nginx serving files with sendfile and an open-file cache. `tcp_nopush` sends header and file
/// in one packet, which makes it about 15 % cheaper.
pub fn with_files(lab: &mut Lab, root: &Path) -> Result<Stack> {
    let name = "nginx-files";
    let group = Group::new(lab, name)?;
    let locations = format!(
        "root {};
    tcp_nopush on;
    open_file_cache max=1000 inactive=60s;
    open_file_cache_valid 30s;",
        root.display()
    );
    start(lab, group, name, &locations)
}

/// nginx answering two bytes by itself: what HTTP alone costs it.
pub fn with_return(lab: &mut Lab) -> Result<Stack> {
    let name = "nginx-return";
    let group = Group::new(lab, name)?;
    start(lab, group, name, "location / { return 200 'ok'; }")
}

fn start(lab: &mut Lab, group: Group, name: &'static str, server: &str) -> Result<Stack> {
    start_with(lab, group, name, "", server)
}

fn start_with(
    lab: &mut Lab,
    mut group: Group,
    name: &'static str,
    main: &str,
    server: &str,
) -> Result<Stack> {
    let binary = program(&["/usr/sbin/nginx"], "nginx-light")?;
    let folder = lab.folder(name)?;
    let address = free_address()?;
    let user = if is_root() { "user www-data;" } else { "" };
    let config = format!(
        "{main}
{user}
daemon off;
worker_processes {cores};
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 16384; }}
http {{
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  access_log off;
  sendfile on;
  keepalive_timeout 3600s;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body;
  fastcgi_temp_path {folder}/fastcgi;
  proxy_temp_path {folder}/proxy;
  scgi_temp_path {folder}/scgi;
  uwsgi_temp_path {folder}/uwsgi;
  server {{
    listen {address} backlog=4096;
    server_name {HOST};
    {server}
  }}
}}
",
        cores = lab.cores,
        folder = folder.display(),
    );
    let file = folder.join("nginx.conf");
    write(&file, config)?;
    let mut command = Command::new(binary);
    command.arg("-e").arg("stderr").arg("-p").arg(&folder).arg("-c").arg(&file);
    group.start(lab, &command)?;
    Stack { name, address, group }.await_answer()
}
