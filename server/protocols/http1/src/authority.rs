//! The host and port of a target or of a Host field (RFC 3986 3.2, RFC 9110 4.2 and 7.2).
//!
//! Called by `target` and `request`, and by the gateway to route by name. Invariant: an
//! accepted authority is a DNS name, an IPv4 address or a bracketed IPv6 address, with an optional
//! port. Userinfo, percent-encoding and the sub-delimiters that RFC 3986 allows in a reg-name are
//! refused: no host in use has them, and applications print their host unescaped.

use std::net::Ipv6Addr;

/// Splits `host[:port]`, as [`RequestHead::host`](crate::RequestHead::host) returns it.
///
/// `None` for a port that is absent or empty. IPv6 addresses keep their brackets.
///
/// # Examples
///
/// ```
/// use outboard_http1::split_host_port;
///
/// assert_eq!(split_host_port(b"example.org:8080"), (&b"example.org"[..], Some(8080)));
/// assert_eq!(split_host_port(b"[::1]"), (&b"[::1]"[..], None));
/// ```
pub fn split_host_port(authority: &[u8]) -> (&[u8], Option<u16>) {
    let name_end = match authority.first() {
        Some(b'[') => authority.iter().position(|&byte| byte == b']').map_or(0, |at| at + 1),
        _ => authority.iter().position(|&byte| byte == b':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(name_end);
    (host, rest.strip_prefix(b":").and_then(read_port).flatten())
}

/// Whether `authority` is a non-empty host with an optional port.
pub fn is_valid(authority: &[u8]) -> bool {
    let rest = match authority.strip_prefix(b"[") {
        Some(literal) => {
            let Some(end) = literal.iter().position(|&byte| byte == b']') else {
                return false;
            };
            if !is_ipv6(&literal[..end]) {
                return false;
            }
            &literal[end + 1..]
        }
        None => {
            let end = authority.iter().position(|&byte| !is_name_byte(byte));
            match end {
                None => return !authority.is_empty(),
                Some(0) => return false,
                Some(end) => &authority[end..],
            }
        }
    };
    rest.is_empty() || rest.strip_prefix(b":").is_some_and(|port| read_port(port).is_some())
}

/// RFC 9112 3.2.3: whether `authority` is valid and names a port.
pub(crate) fn is_valid_with_port(authority: &[u8]) -> bool {
    is_valid(authority) && split_host_port(authority).1.is_some()
}

/// Each byte of each request's host is looked up.
const NAME_BYTES: [bool; 256] = {
    let mut is_name = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        is_name[byte] =
            (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'.' | b'_' | b'~');
        byte += 1;
    }
    is_name
};

fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[usize::from(byte)]
}

fn is_ipv6(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// RFC 3986 3.2.3: digits, possibly none. `None` if not a port, `Some(None)` if empty.
fn read_port(digits: &[u8]) -> Option<Option<u16>> {
    if digits.is_empty() {
        return Some(None);
    }
    let port = digits.iter().try_fold(0u16, |port, byte| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        port.checked_mul(10)?.checked_add(digit)
    });
    port.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_ports_are_accepted() {
        for host in ["a", "example.com", "a_b.test:80", "127.0.0.1:8080", "a:", "[::1]", "[::1]:8"]
        {
            assert!(is_valid(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for host in [
            "",
            ":80",
            "a:b",
            "a:65536",
            "a:-1",
            "a:80:80",
            "u@a",
            "a/b",
            "a,b",
            "a b",
            "a%41",
            "[::1",
            "[]",
            "[1.2.3.4]",
            "[::1]x",
            "::1",
            "a\\b",
            "a?b",
            "a'b",
            "[::1%25lo]",
        ] {
            assert!(!is_valid(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn a_port_is_split_off() {
        assert_eq!(split_host_port(b"a.test:81"), (&b"a.test"[..], Some(81)));
        assert_eq!(split_host_port(b"a.test:"), (&b"a.test"[..], None));
        assert_eq!(split_host_port(b"a.test"), (&b"a.test"[..], None));
        assert_eq!(split_host_port(b"[::1]:443"), (&b"[::1]"[..], Some(443)));
        assert_eq!(split_host_port(b"[::1]"), (&b"[::1]"[..], None));
    }
}
