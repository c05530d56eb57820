//! [`Stop`]: why a command ends before its result, and the exit codes of all commands.
//!
//! Returned by each command of `outboard bench`, and reported by `bench`.

use outboard_load::Error;

/// The run failed.
pub(super) const FAILED: u8 = 1;
/// A mistake in the arguments.
pub(super) const MISTAKE: u8 = 2;
/// A threshold or a check was missed.
pub(super) const MISSED: u8 = 3;
/// The result is not reliable.
pub(super) const INVALID: u8 = 5;
/// Ctrl-C ended it: 128 and the number of the signal, as in shells.
pub(super) const INTERRUPTED: u8 = 130;

/// The error message and the exit code.
pub(super) struct Stop(pub(super) u8, pub(super) String);

impl Stop {
    pub(super) fn mistake(why: impl ToString) -> Self {
        Stop(MISTAKE, why.to_string())
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        let code = if matches!(error, Error::Plan(_)) { MISTAKE } else { FAILED };
        Stop(code, error.to_string())
    }
}
