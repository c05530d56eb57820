//! ab and wrk: their flags and the layouts of their reports.
//!
//! One file per tool; [`getopt`] parses the flags. The layouts have no place for warnings, so these
//! go to standard error and into the exit code.

mod ab;
mod getopt;
mod shared;
mod wrk;

pub(super) use ab::ab;
pub(super) use wrk::wrk;
