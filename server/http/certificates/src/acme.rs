//! ACME (RFC 8555): what is sent to an authority, and what it replies.
//!
//! Called by the manager, for one name at a time. It stores nothing. Invariants: a request whose nonce was
//! rejected is repeated with another one; a reply is never larger than [`client::MAX_BODY_BYTES`]; all
//! waits end.

mod account_key;
mod client;
mod failure;
mod messages;
mod problem;

pub(crate) use account_key::{AccountKey, base64url};
pub(crate) use client::{Client, Order};
pub(crate) use failure::Failure;
pub(crate) use messages::{Authorization, Challenge, OrderStatus};
#[cfg(test)]
pub(crate) use problem::Problem;
