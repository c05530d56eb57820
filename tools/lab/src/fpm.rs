//! php-fpm: a static pool behind a Unix socket, part of the nginx + php-fpm stack.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use crate::error::Result;
use crate::group::Group;
use crate::lab::Lab;
use crate::system::{is_root, program, write};

/// A static pool.
#[derive(Debug, Clone, Copy)]
pub struct Pool {
    /// The fixed number of processes.
    pub children: usize,
    /// Ini values in addition to those of all stacks.
    pub ini: &'static [(&'static str, &'static str)],
}

impl Pool {
    /// As many children as any stack has PHP processes, with the ini values of all stacks.
    pub fn usual(lab: &Lab) -> Self {
        Self::of(lab.php_processes())
    }

    /// This many children, with the ini values of all stacks.
    pub fn of(children: usize) -> Self {
        Self { children, ini: &[] }
    }
}

/// Starts an FPM master with a pool in the stack's group; returns the path of its socket.
pub fn start(lab: &mut Lab, group: &mut Group, name: &str, pool: Pool) -> Result<PathBuf> {
    let children = pool.children;
    let binary = lab.php.fpm();
    program(&[&binary.to_string_lossy()], "php-fpm")?;
    let directory = lab.directory(&format!("{name}-pool"))?;
    let ini = directory.join("php.ini");
    lab.php.ini_file_with(&ini, pool.ini)?;
    let socket = directory.join("fpm.sock");
    let user = if is_root() {
        "user = www-data\ngroup = www-data\nlisten.owner = www-data\nlisten.group = www-data"
    } else {
        ""
    };
    let config = format!(
        "[global]
daemonize = no
error_log = {directory}/fpm-error.log
log_level = warning
[www]
{user}
listen = {socket}
listen.backlog = 4096
pm = static
pm.max_children = {children}
",
        directory = directory.display(),
        socket = socket.display(),
    );
    let file = directory.join("fpm.conf");
    write(&file, config)?;
    let mut command = Command::new(binary);
    command.env("PHP_INI_SCAN_DIR", lab.php.scan_directory());
    command.arg("-F").arg("-c").arg(&ini).arg("-y").arg(&file);
    group.start(lab, &command)?;
    group.await_start(|| UnixStream::connect(&socket).is_ok())?;
    Ok(socket)
}
