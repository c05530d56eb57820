//! Terminal output, with colour if enabled.

use clap::ColorChoice;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Whether and how to decorate output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    pub(crate) color_out: bool,
    pub(crate) color_err: bool,
}

impl Terminal {
    pub(crate) fn new(choice: ColorChoice) -> Self {
        let decide = |is_terminal: bool| match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none(),
        };
        Self {
            color_out: decide(std::io::stdout().is_terminal()),
            color_err: decide(std::io::stderr().is_terminal()),
        }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        if self.color_out { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        if self.color_out { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Prints an error and returns the exit code.
    pub(crate) fn fail(&self, message: &str, code: u8) -> ExitCode {
        let error = if self.color_err { "\x1b[1;31merror\x1b[0m" } else { "error" };
        eprintln!("{error}: {}", message.trim_end());
        ExitCode::from(code)
    }
}

/// Prints a line as [`show`] does.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::terminal::show(&format!("{}\n", format_args!($($words)*)))
    };
}
pub(crate) use say;

/// Prints a page; a closed pipe (`| head`) is not an error.
pub(crate) fn show(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
