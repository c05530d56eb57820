//! The fields that report the cache's part in a response: `Cache-Status` (RFC 9211) and `X-Cache`.
//!
//! Called when a head is rendered. Invariant: every value is a constant token or a number.

use crate::reason::Reason;
use outboard_http1::write_u64;

/// The cache's part in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// From the cache, fresh.
    Hit {
        /// The seconds until it becomes stale.
        remaining_s: i64,
    },
    /// From the cache, stale.
    Stale {
        /// The seconds since it became stale, as a negative number.
        remaining_s: i64,
        /// Whether because the origin failed rather than during a revalidation.
        after_error: bool,
    },
    /// From another client's request for the same page, which this one waited for.
    Collapsed {
        /// The seconds until it becomes stale.
        remaining_s: i64,
    },
    /// The origin confirmed what was stored.
    Revalidated {
        /// The seconds until it becomes stale.
        remaining_s: i64,
    },
    /// From the origin; the response may have been stored.
    Miss {
        /// Why the request was forwarded.
        forward: MissReason,
        /// Whether the response is stored, or why not.
        stored: Result<(), Reason>,
    },
    /// The cache was not used.
    Bypass(Reason),
}

/// Why a request was forwarded to the origin (RFC 9211 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissReason {
    /// Nothing is stored for the URI.
    Uri,
    /// Responses are stored, but for requests with other fields.
    Vary,
    /// The stored response is stale.
    Stale,
    /// The request did not accept the stored response.
    Request,
}

impl MissReason {
    /// The value of `fwd`.
    pub fn token(self) -> &'static str {
        match self {
            Self::Uri => "uri-miss",
            Self::Vary => "vary-miss",
            Self::Stale => "stale",
            Self::Request => "request",
        }
    }
}

impl CacheStatus {
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
            Self::Hit { remaining_s } | Self::Stale { remaining_s, after_error: false } => {
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
