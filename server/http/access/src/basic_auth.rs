//! Basic authentication (RFC 7617): credentials, users and their password hashes.
//!
//! The gateway reads credentials on its loop and verifies passwords on a thread, because a good hash takes
//! tens of milliseconds.

mod credentials;
mod crypt;
mod password_hash;
mod unusable_hash;
mod users;
mod verified;

pub use credentials::Credentials;
pub use password_hash::PasswordHash;
pub use unusable_hash::UnusableHash;
pub use users::{UnusableUser, Users};
pub use verified::Verified;
