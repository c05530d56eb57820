//! Traces of requests: the URL of their collector.

use super::context::Context;
use super::proxy::check_url;
use crate::diagnostic::Kind;
use crate::raw::Tracing;

/// The settings; `None` without an endpoint.
pub(super) fn tracing(mut tracing: Tracing, context: &mut Context<'_>) -> Option<Tracing> {
    if tracing.endpoint.is_empty() {
        return None;
    }
    let written = tracing.endpoint.trim_end_matches('/');
    if let Err(fault) = check_url(written) {
        context.value(&["tracing", "endpoint"], Kind::BadValue, fault);
    }
    let has_path = written.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    let path = if has_path { "" } else { "/v1/traces" };
    tracing.endpoint = format!("{written}{path}");
    Some(tracing)
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use std::path::Path;

    fn endpoint_of(written: &str) -> Option<String> {
        let text = format!("[app.a]\nroot = \"/tmp\"\n[tracing]\nendpoint = \"{written}\"\n");
        let config = Config::parse(&text, Path::new("/tmp/test.toml")).ok()?;
        Some(config.tracing.expect("it has an endpoint").endpoint)
    }

    #[test]
    fn an_endpoint_without_a_path_has_that_of_otlp() {
        let of = |written: &str| endpoint_of(written).expect("it is valid");
        assert_eq!(of("http://127.0.0.1:4318"), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(of("http://[::1]:4318/"), "http://[::1]:4318/v1/traces");
        assert_eq!(of("https://a.test/otlp/v1/traces"), "https://a.test/otlp/v1/traces");
        for bad in ["127.0.0.1:4318", "grpc://a:4317", "http://u:p@a", "http://"] {
            assert_eq!(endpoint_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn without_an_endpoint_nothing_is_traced() {
        let text = "[app.a]\nroot = \"/tmp\"\n[tracing]\nsample = \"100%\"\n";
        let config = Config::parse(text, Path::new("/tmp/test.toml")).expect("it is valid");
        assert_eq!(config.tracing, None);
    }
}
