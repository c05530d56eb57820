//! What the server is for.

use crate::raw;
use std::fmt;

/// What a server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// To serve visitors.
    Production,
    /// To write code against.
    Development,
}

/// As the configuration file writes it.
impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Environment::Production => "production",
            Environment::Development => "development",
        })
    }
}

pub(super) fn environment(raw: raw::Environment) -> Environment {
    match raw {
        raw::Environment::Production => Environment::Production,
        raw::Environment::Development => Environment::Development,
    }
}
