//! Invalidation by unsafe methods (RFC 9111 4.4).
//!
//! Called after the response to an unsafe method. Invariant: a response invalidates only resources of
//! its own origin.

use crate::message::Response;
use outboard_http1::Method;

/// Whether the method is unsafe (RFC 9110 9.2.1), as unknown methods are.
pub fn is_unsafe(method: Method) -> bool {
    !matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace)
}

/// The target of a request.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// `http` or `https`.
    pub scheme: &'a [u8],
    /// Host and port, as in the Host field.
    pub authority: &'a [u8],
    /// Path and query as requested.
    pub path_and_query: &'a [u8],
}

/// The invalidated paths with their queries: the target's own and those of Location and
/// Content-Location. Empty for an error response.
///
/// # Examples
///
/// ```
/// use outboard_http1::Method;
/// use outboard_page_cache::{Fields, Response, Target, invalidated};
///
/// let target = Target { scheme: b"https", authority: b"example.org", path_and_query: b"/posts" };
/// let fields = [(&b"Location"[..], &b"/posts/1"[..])];
/// let created = Response { status: 201, fields: Fields(&fields) };
/// assert_eq!(invalidated(Method::Post, target, created), [b"/posts".to_vec(), b"/posts/1".to_vec()]);
/// assert!(invalidated(Method::Get, target, created).is_empty());
/// ```
pub fn invalidated<'a>(method: Method, target: Target<'a>, response: Response<'a>) -> Vec<Vec<u8>> {
    if !is_unsafe(method) || !(200..400).contains(&response.status) {
        return Vec::new();
    }
    let named = ["location", "content-location"];
    let named = named.iter().filter_map(|name| response.fields.first(name));
    let mut paths = vec![target.path_and_query.to_vec()];
    for path in named.filter_map(|reference| resolve(target, reference)) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// The path and query of a URI reference (RFC 3986 5.2), if it stays in the origin.
fn resolve(target: Target<'_>, reference: &[u8]) -> Option<Vec<u8>> {
    let reference = reference.split(|&byte| byte == b'#').next().unwrap_or_default();
    let base = target.path_and_query.split(|&byte| byte == b'?').next().unwrap_or_default();
    let below_authority = match reference {
        [b'/', b'/', rest @ ..] => Some(rest),
        _ => match memchr::memmem::find(reference, b"://") {
            // A path may contain `://` as well; a scheme has no slash before it.
            Some(at) if !reference[..at].contains(&b'/') && !reference[..at].contains(&b'?') => {
                if !reference[..at].eq_ignore_ascii_case(target.scheme) {
                    return None;
                }
                Some(&reference[at + 3..])
            }
            _ => None,
        },
    };
    let path = match below_authority {
        Some(rest) => {
            let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            if !same_authority(target, authority) {
                return None;
            }
            match path {
                [b'/', ..] => path.to_vec(),
                _ => [b"/", path].concat(),
            }
        }
        None => match reference {
            [] => return None,
            [b'/', ..] => reference.to_vec(),
            [b'?', ..] => [base, reference].concat(),
            _ => {
                let directory_len =
                    base.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
                [&base[..directory_len], reference].concat()
            }
        },
    };
    Some(path)
}

fn same_authority(target: Target<'_>, other: &[u8]) -> bool {
    let default_port: &[u8] =
        if target.scheme.eq_ignore_ascii_case(b"https") { b":443" } else { b":80" };
    let bare = |authority: &[u8]| -> Vec<u8> {
        authority.strip_suffix(default_port).unwrap_or(authority).to_ascii_lowercase()
    };
    bare(target.authority) == bare(other)
}
