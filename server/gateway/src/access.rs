//! What access rules and bans have at run time: the tables of rate limits, and the ban list with its file.
//!
//! Held by the generations; [`crate::admission`] checks requests by it.

mod ban_file;
pub(crate) mod client_key;
mod limits;
mod passwords;
pub(crate) mod rate_operations;
mod rate_script;
mod rate_sharing;
mod shared;

pub(crate) use limits::{RateLimits, Taken};
pub(crate) use passwords::Verdict;
pub(crate) use rate_sharing::RateSharing;
pub(crate) use shared::SharedAccess;
