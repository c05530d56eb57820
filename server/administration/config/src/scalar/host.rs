//! Host names of an app.

use super::kind::{Fault, Scalar, Written};

/// A host name of an app: lower case, without a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostPattern {
    /// Exactly this name or IP address (IPv6 in brackets).
    Exact(String),
    /// Every name below this one, at any depth: `*.example.org` is stored as `example.org` and
    /// matches `a.example.org` and `b.a.example.org`, but not `example.org` itself.
    Wildcard(String),
}

impl HostPattern {
    /// Whether the request's host matches. `host` has no port; letter case and a final dot do
    /// not matter.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self {
            HostPattern::Exact(name) => name.eq_ignore_ascii_case(host),
            HostPattern::Wildcard(parent) => {
                let Some(at) = host.len().checked_sub(parent.len() + 1) else { return false };
                at > 0
                    && host.as_bytes()[at] == b'.'
                    && host.as_bytes()[at + 1..].eq_ignore_ascii_case(parent.as_bytes())
            }
        }
    }
}

impl HostPattern {
    /// How closely it names a host: 0 if it does not match, the most for the name itself, and more for a longer
    /// wildcard than for a shorter one.
    pub fn precision(&self, host: &str) -> usize {
        match self {
            _ if !self.matches(host) => 0,
            HostPattern::Exact(_) => usize::MAX,
            HostPattern::Wildcard(parent) => parent.len(),
        }
    }
}

impl Scalar for HostPattern {
    const NAME: &'static str = "host name";
    const EXPECTED: &'static str = "a host name such as \"example.org\" or \"*.example.org\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        let bad = || Fault::new(format!("`{text}` is not a host name")).hint(Self::EXPECTED);
        if text.contains("://") {
            let name = text.split(['/', ':']).nth(3).unwrap_or_default();
            return Err(bad().hint(format!("write only the name: \"{name}\"")));
        }
        if text.contains('/') {
            let name = text.split('/').next().unwrap_or_default();
            return Err(
                bad().hint(format!("write \"{name}\"; a path belongs to `path` of the app"))
            );
        }
        if !text.is_ascii() {
            return Err(bad().hint("write an international name in its ASCII form (xn--…)"));
        }
        if text.starts_with('[') && text.ends_with(']') {
            let address: std::net::Ipv6Addr = text[1..text.len() - 1].parse().map_err(|_| bad())?;
            return Ok(HostPattern::Exact(format!("[{address}]")));
        }
        if text.contains(':') {
            let name = text.split(':').next().unwrap_or_default();
            return Err(bad().hint(format!("write \"{name}\"; the port belongs to `listen`")));
        }
        let lower = text.to_ascii_lowercase();
        let lower = lower.strip_suffix('.').unwrap_or(&lower);
        match lower.strip_prefix("*.") {
            _ if lower == "*" || lower == "_" => {
                Err(bad().hint("omit `hosts` to match every host"))
            }
            Some(parent) if is_name(parent) => Ok(HostPattern::Wildcard(parent.to_owned())),
            None if is_name(lower) => Ok(HostPattern::Exact(lower.to_owned())),
            _ => Err(bad()),
        }
    }

    fn write(&self) -> String {
        match self {
            HostPattern::Exact(name) => name.clone(),
            HostPattern::Wildcard(parent) => format!("*.{parent}"),
        }
    }
}

/// RFC 1123 names, and the underscore that occurs in practice.
fn is_name(name: &str) -> bool {
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
}
