//! The server through which gateways share rate limits.

use super::app::App;
use super::context::Context;
use super::page_cache_shared::{self, PageCacheShared};
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::Fault;

/// Prefix of the keys of shared rate limits.
const SHARED_NAME: &str = "rates";

/// The server of shared limits. A limit that is shared needs it.
pub(super) fn sharing(
    raw: Option<&raw::RateSharing>,
    apps: &[App],
    context: &mut Context<'_>,
) -> Option<PageCacheShared> {
    let Some(raw) = raw else {
        apps.iter().for_each(|app| check_unshared(app, context));
        return None;
    };
    match page_cache_shared::read(&raw.server.0) {
        Ok(server) => Some(PageCacheShared {
            tls_verified: server.tls_verified.map(|_| raw.verify),
            name: raw.name.as_ref().map_or(SHARED_NAME, |name| &name.0).to_owned(),
            timeout_ms: raw.timeout.0,
            ..server
        }),
        Err(fault) => {
            context.value(&["rate_sharing", "server"], Kind::BadValue, fault);
            None
        }
    }
}

fn check_unshared(app: &App, context: &mut Context<'_>) {
    let mut report = |place: &[&str]| {
        let fault = Fault::new("there is no server through which gateways share it");
        let fault = fault.hint("add [rate_sharing] with server = \"redis://…\"");
        context.key(&[&["app", &app.name], place].concat(), Kind::MissingKey, fault);
    };
    for (index, rule) in app.access.rules.iter().enumerate() {
        if rule.rate_limit.as_ref().is_some_and(|limit| limit.is_shared) {
            report(&["access", &index.to_string(), "rate_limit", "shared"]);
        }
    }
    for (name, _) in app.rate_limits.iter().filter(|(_, limit)| limit.is_shared) {
        report(&["rate_limits", name, "shared"]);
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use std::path::Path;

    fn parsed(text: &str) -> Result<Config, String> {
        let text = format!("[app.site]\nroot = \"/\"\nfront_controller = \"none\"\n{text}\n");
        Config::parse(&text, Path::new("/etc/outboard.toml")).map_err(|errors| errors.to_string())
    }

    const SHARED_RULE: &str =
        "[[app.site.access]]\nrate_limit = { rate = \"9/s\", shared = true }\n";
    const SHARED_SCRIPT: &str = "[app.site.rate_limits.login]\nrate = \"5/min\"\nshared = true\n";

    #[test]
    fn a_shared_limit_needs_a_server() {
        let server = "[rate_sharing]\nserver = \"redis://:pw@10.0.0.5/2\"\n";
        for limit in [SHARED_RULE, SHARED_SCRIPT] {
            let error = parsed(limit).unwrap_err();
            assert!(error.contains("no server through which gateways share it"), "{error}");
            let config = parsed(&format!("{limit}{server}")).unwrap();
            let sharing = config.rate_sharing.unwrap();
            assert_eq!((sharing.timeout_ms, sharing.name.as_str()), (50, "rates"));
            assert_eq!((sharing.host.as_str(), sharing.database), ("10.0.0.5", 2));
        }
        let error = parsed("[rate_sharing]\nserver = \"10.0.0.5\"").unwrap_err();
        assert!(error.contains("redis://"), "{error}");
    }
}
