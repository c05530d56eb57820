//! Routes that are proxied to another server.

use super::condition::Names;
use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw::{Proxy, ProxyTarget};
use crate::scalar::Fault;

/// `place` is the app's.
pub(super) fn proxies(
    written: &[Proxy],
    names: &Names,
    place: &[&str],
    context: &mut Context<'_>,
) -> Vec<Proxy> {
    let mut proxies = written.to_vec();
    for (index, proxy) in proxies.iter_mut().enumerate() {
        let index = index.to_string();
        let at = [place, &["proxy", &index]].concat();
        let place = [&at[..], &["if"]].concat();
        proxy.requirement = names.requirement(&proxy.conditions, &place, context);
        match target(&proxy.written_upstream) {
            Ok(target) => proxy.upstream = target,
            Err(fault) => {
                context.value(&[&at[..], &["upstream"]].concat(), Kind::BadValue, fault);
            }
        }
        if let Some(mirror) = &mut proxy.mirror {
            if let Err(fault) = check_url(&mirror.upstream) {
                let at = [&at[..], &["mirror", "upstream"]].concat();
                context.value(&at, Kind::BadValue, fault);
            }
            mirror.upstream = mirror.upstream.trim_end_matches('/').to_owned();
        }
    }
    proxies
}

/// A URL, or the name of a group with a path.
pub(super) fn target(text: &str) -> Result<ProxyTarget, Fault> {
    let (name, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.is_empty() && name.bytes().all(is_name) {
        check_url(&format!("http://{text}"))?;
        let path = path.trim_end_matches('/').to_owned();
        return Ok(ProxyTarget::Group { name: name.to_owned(), path });
    }
    check_url(text)?;
    Ok(ProxyTarget::Url(text.trim_end_matches('/').to_owned()))
}

/// Checks the URL of a server.
pub(super) fn check_url(upstream: &str) -> Result<(), Fault> {
    const HINT: &str = "write a URL such as \"http://127.0.0.1:3000\"";
    let rest = upstream.strip_prefix("http://").or(upstream.strip_prefix("https://"));
    let Some(rest) = rest else {
        let hint = match upstream.contains("://") {
            true => HINT.to_owned(),
            false => format!("write \"http://{upstream}\", or the name of an [upstream.NAME]"),
        };
        return Err(Fault::new("it starts with neither http:// nor https://").hint(hint));
    };
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() || authority.contains('@') {
        return Err(Fault::new("the host is missing, or the URL contains credentials").hint(HINT));
    }
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#{}\\\"<>^`|".contains(&byte);
    if !rest.bytes().all(is_plain) {
        return Err(Fault::new("it has a query, a fragment or invalid characters").hint(HINT));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_url_or_a_name_with_a_path() {
        let url = |text: &str| Ok(ProxyTarget::Url(text.to_owned()));
        let group = |name: &str, path: &str| {
            Ok(ProxyTarget::Group { name: name.to_owned(), path: path.to_owned() })
        };
        assert_eq!(target("http://a:80/b/"), url("http://a:80/b"));
        assert_eq!(target("api"), group("api", ""));
        assert_eq!(target("api-2/v1/"), group("api-2", "/v1"));
        for bad in ["", "/v1", "a:80", "a.example", "unix:/run/a.sock", "api/?q"] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_upstream_is_a_scheme_a_host_and_an_optional_path() {
        for good in
            ["http://a", "https://a.example:8443/", "http://[::1]:80/base/x", "http://a/%20"]
        {
            assert!(check_url(good).is_ok(), "{good}");
        }
        for bad in [
            "a:80",
            "ftp://a",
            "http://",
            "http:///x",
            "http://u:p@a",
            "http://a/?q",
            "http://a/ b",
        ] {
            assert!(check_url(bad).is_err(), "{bad}");
        }
    }
}
