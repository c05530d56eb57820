//! `outboard bench` and `outboard lab`: become `outboard-lab`, a program of its own, so that the server carries
//! neither a load generator nor experiments.

use crate::terminal::Terminal;
use clap::{Args, ColorChoice};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ToolArguments {
    /// The arguments; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}

/// Executes a command of outboard-lab, or outboard-lab itself.
pub(crate) fn run(
    command: Option<&str>,
    arguments: &ToolArguments,
    color: ColorChoice,
    terminal: &Terminal,
) -> ExitCode {
    let own = std::env::current_exe().unwrap_or_default();
    let candidates = candidates(&own);
    let Some(program) = candidates.iter().find(|path| path.is_file()) else {
        let message = format!(
            "the lab is not installed: outboard-lab is neither {} nor {}; install the package outboard-lab, or run \
             `cargo build --release -p outboard-lab`",
            candidates[0].display(),
            candidates[1].display()
        );
        return terminal.fail(&message, 1);
    };
    let mut tool = Command::new(program);
    if color != ColorChoice::Auto {
        tool.arg(format!("--color={color}"));
    }
    let error = tool.args(command).args(&arguments.arguments).exec();
    terminal.fail(&format!("cannot run {}: {error}", program.display()), 1)
}

/// Beside this program, or in the `libexec` directory of its prefix.
fn candidates(own: &Path) -> [PathBuf; 2] {
    let prefix = own.parent().and_then(Path::parent).unwrap_or(Path::new("/usr/local"));
    [own.with_file_name("outboard-lab"), prefix.join("libexec/outboard/outboard-lab")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_is_looked_for_beside_the_program_and_in_libexec() {
        let [beside, libexec] = candidates(Path::new("/usr/bin/outboard"));
        assert_eq!(beside, Path::new("/usr/bin/outboard-lab"));
        assert_eq!(libexec, Path::new("/usr/libexec/outboard/outboard-lab"));
    }
}
