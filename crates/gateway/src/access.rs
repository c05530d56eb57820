//! What access rules and bans have at run time: the tables of rate limits, and the ban list with its file.
//!
//! Held by the generations; [`crate::admission`] checks requests by it.

mod ban_file;
mod limits;
mod passwords;
mod shared;

pub(crate) use limits::RateLimits;
pub(crate) use passwords::Verdict;
pub(crate) use shared::SharedAccess;
