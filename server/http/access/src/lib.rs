//! Which clients may send requests, and how often: networks, rate limits and bans.
//!
//! The gateway calls this for each connection and each request. Nothing here has a socket, a file or a
//! clock: addresses, names and times are parameters, so that each promise is a plain test. Invariant: what
//! clients can fill (the table of a rate limit) has a size that is set at its creation.

#![forbid(unsafe_code)]

mod ban_list;
mod basic_auth;
mod limit_id;
mod network;
mod network_set;
mod rate;
mod rate_table;
mod shared_buckets;

pub use ban_list::{Ban, BanList, BansFull};
pub use basic_auth::{Credentials, PasswordHash, UnusableHash, UnusableUser, Users, Verified};
pub use limit_id::{BucketId, LimitId};
pub use network::{InvalidNetwork, Network};
pub use network_set::NetworkSet;
pub use rate::{Rate, Spending};
pub use rate_table::{KeyHash, RateTable};
pub use shared_buckets::{Answer, Entry, Granted, SharedBuckets};
