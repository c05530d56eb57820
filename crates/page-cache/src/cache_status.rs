//! What an answer says about the cache: `Cache-Status` (RFC 9211) and `X-Cache`.
//!
//! Called when a head is put together. Invariant: everything written here is a token, a number or
//! a quoted string of our own making.

use crate::reason::Reason;
use outboard_http1::write_u64;

/// How an answer came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// From the cache, fresh.
    Hit {
        /// For how many more seconds it is fresh.
        remaining_s: i64,
    },
    /// From the cache, stale.
    Stale {
        /// Since when, as a negative number of seconds.
        remaining_s: i64,
        /// Whether because the origin failed rather than because a new one is being made.
        after_error: bool,
    },
    /// From a request of somebody else for the same, that this one waited for.
    Collapsed {
        /// For how many more seconds it is fresh.
        remaining_s: i64,
    },
    /// The origin confirmed what was stored.
    Revalidated {
        /// For how many more seconds it is fresh now.
        remaining_s: i64,
    },
    /// The origin was asked, and its answer may have been kept.
    Miss {
        /// Why it was asked.
        forward: Missed,
        /// Whether the answer is kept, or why not.
        stored: Result<(), Reason>,
    },
    /// The cache had no part in it.
    Bypass(Reason),
}

/// Why something was not answered from the cache (RFC 9211 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Nothing is stored for the URI.
    Uri,
    /// Something is stored, but for requests with other fields.
    Vary,
    /// What is stored is stale.
    Stale,
    /// The request did not want what is stored.
    Request,
}

impl Missed {
    /// As it stands in the field.
    pub fn token(self) -> &'static str {
        match self {
            Self::Uri => "uri-miss",
            Self::Vary => "vary-miss",
            Self::Stale => "stale",
            Self::Request => "request",
        }
    }
}

impl Outcome {
    /// The value of X-Cache.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hit { .. } | Self::Collapsed { .. } | Self::Revalidated { .. } => "HIT",
            Self::Stale { .. } => "STALE",
            Self::Miss { stored: Ok(()), .. } => "MISS",
            Self::Miss { stored: Err(_), .. } | Self::Bypass(_) => "BYPASS",
        }
    }

    /// Appends both lines.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Cache-Status: Outboard");
        match self {
            Self::Hit { remaining_s } => {
                out.extend_from_slice(b"; hit");
                write_ttl(out, remaining_s);
            }
            Self::Stale { remaining_s, after_error: false } => {
                out.extend_from_slice(b"; hit");
                write_ttl(out, remaining_s);
            }
            Self::Stale { remaining_s, after_error: true } => {
                out.extend_from_slice(b"; hit");
                write_ttl(out, remaining_s);
                out.extend_from_slice(b"; detail=stale-if-error");
            }
            Self::Collapsed { remaining_s } => {
                out.extend_from_slice(b"; fwd=miss; collapsed");
                write_ttl(out, remaining_s);
            }
            Self::Revalidated { remaining_s } => {
                out.extend_from_slice(b"; fwd=stale; fwd-status=304; stored");
                write_ttl(out, remaining_s);
            }
            Self::Miss { forward, stored } => {
                out.extend_from_slice(b"; fwd=");
                out.extend_from_slice(forward.token().as_bytes());
                match stored {
                    Ok(()) => out.extend_from_slice(b"; stored"),
                    Err(reason) => write_detail(out, reason),
                }
            }
            Self::Bypass(reason) => {
                let forward: &[u8] =
                    if reason == Reason::Method { b"; fwd=method" } else { b"; fwd=bypass" };
                out.extend_from_slice(forward);
                write_detail(out, reason);
            }
        }
        out.extend_from_slice(b"\r\nX-Cache: ");
        out.extend_from_slice(self.word().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

fn write_ttl(out: &mut Vec<u8>, remaining_s: i64) {
    out.extend_from_slice(b"; ttl=");
    if remaining_s < 0 {
        out.push(b'-');
    }
    write_u64(out, remaining_s.unsigned_abs());
}

fn write_detail(out: &mut Vec<u8>, reason: Reason) {
    out.extend_from_slice(b"; detail=");
    out.extend_from_slice(reason.code().as_bytes());
}
