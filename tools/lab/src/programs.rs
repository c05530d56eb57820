//! Programs that start a server: served by `outboard run`, or by PHP with the extension that they were written for.
//!
//! Each program takes its port as its argument and is started in its own directory. Invariant: both
//! servers start the same file; only `outboard run` may replace its address.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Result, ResultExt};
use crate::group::Group;
use crate::lab::Lab;
use crate::outboard;
use crate::stack::Stack;
use crate::system::free_address;
use outboard_resident::EXTENSION;

/// A program under `outboard run`; `None` without an outboard binary.
pub fn with_outboard(lab: &mut Lab, directory: &Path, script: &str) -> Result<Option<Stack>> {
    let Some(binary) = outboard::binary() else { return Ok(None) };
    let address = free_address()?;
    let mut command = Command::new(binary);
    command.arg("run").arg("--listen").arg(address.to_string()).arg(script);
    let mut group = Group::new(lab, outboard::NAME)?;
    group.start(lab, command.current_dir(directory))?;
    Stack { name: outboard::NAME, address, group }.await_response().map(Some)
}

/// A program under PHP's command line with the extension; `None` without the extension.
pub fn with_extension(lab: &mut Lab, directory: &Path, script: &str) -> Result<Option<Stack>> {
    let php = lab.php.cli();
    let mut command = Command::new(&php);
    match &lab.program_extension {
        Some(file) => drop(command.arg("-d").arg(extension_setting(file))),
        None if is_loaded(&php)? => {}
        None => return Ok(None),
    }
    let address = free_address()?;
    command.args(["-d", "opcache.enable_cli=1"]).arg(script).arg(address.port().to_string());
    let mut group = Group::new(lab, EXTENSION)?;
    group.start(lab, command.current_dir(directory))?;
    Stack { name: EXTENSION, address, group }.await_response().map(Some)
}

fn extension_setting(file: &Path) -> String {
    format!("extension={}", file.display())
}

fn is_loaded(php: &PathBuf) -> Result<bool> {
    let context = || format!("run {}", php.display());
    let code = format!("exit((int) !extension_loaded('{EXTENSION}'));");
    let status = Command::new(php).args(["-r", &code]).status().context(context)?;
    Ok(status.success())
}
