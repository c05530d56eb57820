//! Varnish in front of nginx and php-fpm: a page cache as a process of its own.

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::lab::Lab;
use crate::nginx;
use crate::stack::Stack;
use crate::system::{free_address, program, write};

/// Varnish with its built-in rules, 64 MiB, and nginx with php-fpm behind it.
pub fn with_fpm(lab: &mut Lab, root: &Path) -> Result<Stack> {
    let name = "varnish";
    let binary = program(&["/usr/sbin/varnishd"], "varnish")?;
    let behind = nginx::behind(lab, name, root)?;
    let directory = lab.directory(name)?;
    let address = free_address()?;
    let file = directory.join("default.vcl");
    let (host, port) = (behind.address.ip(), behind.address.port());
    write(
        &file,
        format!("vcl 4.1;\nbackend default {{ .host = \"{host}\"; .port = \"{port}\"; }}\n"),
    )?;
    let mut command = Command::new(binary);
    command.args(["-F", "-j", "none", "-s", "malloc,64m", "-a", &address.to_string()]);
    command.args(["-p", "thread_pool_min=50", "-p", "timeout_idle=3600"]);
    command.arg("-n").arg(directory.join("instance")).arg("-f").arg(&file);
    let mut stack = Stack { address, ..behind };
    stack.group.start(lab, &command)?;
    stack.await_response()
}
