//! PHP's built-in web server, which is meant for development.

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::group::Group;
use crate::lab::Lab;
use crate::stack::Stack;
use crate::system::{free_address, program};

/// `php -S` with as many workers as any stack has PHP processes.
pub fn server(lab: &mut Lab, root: &Path) -> Result<Stack> {
    let name = "php -S";
    let binary = lab.php.cli();
    program(&[&binary.to_string_lossy()], "php-cli")?;
    let mut group = Group::new(lab, "php-server")?;
    let ini = lab.directory("php-server")?.join("php.ini");
    lab.php.ini_file_with(&ini, &[("opcache.enable_cli", "1")])?;
    let address = free_address()?;
    let mut command = Command::new(binary);
    command.env("PHP_INI_SCAN_DIR", lab.php.scan_directory());
    command.env("PHP_CLI_SERVER_WORKERS", lab.php_processes().to_string());
    command.arg("-q").arg("-c").arg(&ini).arg("-S").arg(address.to_string()).arg("-t").arg(root);
    group.start(lab, &command)?;
    Stack { name, address, group }.await_response()
}
