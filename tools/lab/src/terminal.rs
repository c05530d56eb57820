//! Terminal output, with colour if enabled.

use clap::ColorChoice;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Whether to decorate output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    is_coloured: bool,
}

impl Terminal {
    pub(crate) fn new(choice: ColorChoice) -> Self {
        let is_coloured = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
            }
        };
        Self { is_coloured }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.decorated("1", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.decorated("31", text)
    }

    fn decorated(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Prints text; a reader that has seen enough (`| head`) is no error.
pub(crate) fn show(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints an error and returns the exit code for it.
pub(crate) fn fail(message: &str, code: u8) -> ExitCode {
    eprintln!("error: {}", message.trim_end());
    ExitCode::from(code)
}
