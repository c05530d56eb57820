//! What distinguishes the clients of a rate limit.
//!
//! Called for each request that a limit counts. Invariant: a request that does not have the configured
//! header or cookie counts by its address, so that leaving it out is no way around a limit.

use outboard_access::{BucketId, LimitId};
use outboard_config::{RateKey, counted_as};
use outboard_http1::RequestHead;
use std::net::IpAddr;

/// See the module.
#[derive(Debug, Hash, PartialEq, Eq)]
pub(crate) enum ClientKey<'r> {
    /// `None`: the peers on Unix sockets.
    Address(Option<IpAddr>),
    Value(&'r [u8]),
}

impl ClientKey<'_> {
    /// Its bucket of a limit that gateways share.
    pub(super) fn bucket(&self, limit: &LimitId) -> BucketId {
        match self {
            Self::Value(value) => limit.bucket(b'v', value),
            Self::Address(None) => limit.bucket(b'u', b""),
            Self::Address(Some(IpAddr::V4(address))) => limit.bucket(b'4', &address.octets()),
            Self::Address(Some(IpAddr::V6(address))) => limit.bucket(b'6', &address.octets()),
        }
    }
}

/// The key of a request.
pub(crate) fn of<'r>(
    key: &RateKey,
    client: Option<IpAddr>,
    head: &'r RequestHead,
    input: &'r [u8],
) -> ClientKey<'r> {
    let value = match key {
        RateKey::Address | RateKey::Script => None,
        RateKey::Header(name) => head.header(input, name.as_bytes()),
        RateKey::Cookie(name) => head
            .headers(input)
            .filter(|(field, _)| field.eq_ignore_ascii_case(b"cookie"))
            .find_map(|(_, pairs)| cookie(pairs, name.as_bytes())),
    };
    match value.filter(|value| !value.is_empty()) {
        Some(value) => ClientKey::Value(value),
        None => ClientKey::Address(client.map(counted_as)),
    }
}

/// The value of a cookie (RFC 6265 4.2.1).
fn cookie<'r>(pairs: &'r [u8], name: &[u8]) -> Option<&'r [u8]> {
    let mut pairs = pairs.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        assert_eq!(cookie(b"a=1; sid=x=y; sid=z", b"sid"), Some(&b"x=y"[..]));
        assert_eq!(cookie(b"asid=1; sid2=2", b"sid"), None);
        assert_eq!(cookie(b"sid", b"sid"), None);
    }
}
