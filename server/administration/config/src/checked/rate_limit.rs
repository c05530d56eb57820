//! Rate limits of access rules and of scripts.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw::{self, RateLimitEntry};
use crate::scalar::{Fault, HeaderName, Scalar, Written};
use outboard_access::Rate;
use std::collections::BTreeMap;

/// How often a client may send requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateLimit {
    /// The rate.
    pub rate: Rate,
    /// The period of the rate as it is written, in seconds.
    pub period_s: u64,
    /// What distinguishes clients.
    pub key: RateKey,
    /// Clients that are known at the same time.
    pub clients: usize,
    /// Whether refused requests get `RateLimit` fields.
    pub sends_fields: bool,
    /// Whether gateways share it.
    pub is_shared: bool,
}

/// What distinguishes clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateKey {
    /// Their address.
    Address,
    /// A header field of the request.
    Header(String),
    /// A cookie of the request.
    Cookie(String),
    /// What a script chooses.
    Script,
}

/// The limit of an access rule.
pub(super) fn of_rule(raw: &RateLimitEntry) -> Result<RateLimit, Fault> {
    let (rate, table) = match raw {
        RateLimitEntry::Rate(rate) => (rate, None),
        RateLimitEntry::Table(table) => (&table.rate, Some(table)),
    };
    let burst = table.and_then(|table| table.burst);
    Ok(RateLimit {
        rate: Rate::new(rate.count, rate.period_ms, burst.unwrap_or(rate.count)),
        period_s: rate.period_ms.div_ceil(1_000),
        key: table.map_or(Ok(RateKey::Address), |table| key(&table.key.0))?,
        clients: table.map_or_else(raw::default_clients, |table| table.clients) as usize,
        sends_fields: table.is_some_and(|table| table.headers),
        is_shared: table.is_some_and(|table| table.shared),
    })
}

/// The limits of an app's scripts, by name.
pub(super) fn of_scripts(
    raw: &BTreeMap<String, raw::ScriptRate>,
    base: &[&str],
    context: &mut Context<'_>,
) -> BTreeMap<String, RateLimit> {
    for name in raw.keys().filter(|name| !is_name(name)) {
        let fault = Fault::new(format!("`{name}` is not the name of a limit"))
            .hint("use letters, digits, `-` and `_`, at most 64");
        context.key(&[base, &["rate_limits", name]].concat(), Kind::BadValue, fault);
    }
    let limit = |raw: &raw::ScriptRate| RateLimit {
        rate: Rate::new(raw.rate.count, raw.rate.period_ms, raw.burst.unwrap_or(raw.rate.count)),
        period_s: raw.rate.period_ms.div_ceil(1_000),
        key: RateKey::Script,
        clients: raw.clients as usize,
        sends_fields: false,
        is_shared: raw.shared,
    };
    raw.iter().map(|(name, raw)| (name.clone(), limit(raw))).collect()
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn key(written: &str) -> Result<RateKey, Fault> {
    let bad = || {
        let fault = Fault::new(format!("`{written}` distinguishes no clients"));
        fault.hint("write \"address\", \"header:NAME\" or \"cookie:NAME\"")
    };
    match written.split_once(':') {
        None if written == "address" => Ok(RateKey::Address),
        Some(("header", name)) => {
            let HeaderName(name) = HeaderName::read(Written::Text(name)).map_err(|_| bad())?;
            Ok(RateKey::Header(name))
        }
        Some(("cookie", name)) if !name.is_empty() && !name.contains(['=', ';', ' ']) => {
            Ok(RateKey::Cookie(name.to_owned()))
        }
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use std::path::Path;

    fn parsed(text: &str) -> Result<Config, String> {
        let text = format!("[app.site]\nroot = \"/\"\nfront_controller = \"none\"\n{text}\n");
        Config::parse(&text, Path::new("/etc/outboard.toml")).map_err(|errors| errors.to_string())
    }

    #[test]
    fn limits_of_scripts_have_a_name_and_a_rate() {
        let config = parsed("[app.site.rate_limits.login]\nrate = \"5/min\"\nburst = 3").unwrap();
        let limit = &config.apps[0].rate_limits["login"];
        assert_eq!((limit.rate, limit.is_shared), (Rate::new(5, 60_000, 3), false));
        let error = parsed("[app.site.rate_limits.\"a b\"]\nrate = \"5/min\"").unwrap_err();
        assert!(error.contains("`a b` is not the name of a limit"), "{error}");
        let error = parsed("[app.site.rate_limits.login]\nrate = \"0/min\"").unwrap_err();
        assert!(error.contains("rate"), "{error}");
    }
}
