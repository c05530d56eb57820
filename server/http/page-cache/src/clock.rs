//! The wall clock of the tiers; the rules get the time as a parameter.

use outboard_log::Wall;

/// Seconds since 1970.
pub fn now_s() -> u64 {
    Wall::now().unix_s()
}
