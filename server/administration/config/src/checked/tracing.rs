//! Traces of requests.

use super::Context;
use super::proxy::check_url;
use crate::diagnostic::Kind;
use crate::raw;

/// The collector, and what is exported to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracing {
    /// The URL of exports.
    pub endpoint: String,
    /// Header fields of exports.
    pub headers: Vec<(String, String)>,
    /// The attribute `service.name`.
    pub service_name: String,
    /// Share of the requests that are exported, in millionths.
    pub sample_millionths: u32,
    /// Requests that take longer are exported in any case; 0: none.
    pub slow_ms: u64,
    /// Whether failed requests are exported in any case.
    pub keeps_errors: bool,
    /// Whether spans of database queries have their texts.
    pub has_statements: bool,
    /// Peers whose trace context is continued.
    pub accept: AcceptContext,
    /// Whether exports are compressed by gzip.
    pub is_compressed: bool,
    /// Maximum memory of spans that wait, of all threads.
    pub buffer_bytes: u64,
    /// Maximum time for an export.
    pub timeout_ms: u64,
    /// Maximum time that spans wait to be exported together.
    pub delay_ms: u64,
}

/// Peers whose trace context is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptContext {
    /// Every client.
    All,
    /// Trusted proxies.
    Trusted,
    /// None.
    None,
}

/// The settings; `None` without an endpoint.
pub(super) fn tracing(raw: &raw::Tracing, context: &mut Context<'_>) -> Option<Tracing> {
    let written = raw.endpoint.as_ref()?.0.trim_end_matches('/');
    if let Err(fault) = check_url(written) {
        context.value(&["tracing", "endpoint"], Kind::BadValue, fault);
    }
    let has_path = written.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    let endpoint = if has_path { written.to_owned() } else { format!("{written}/v1/traces") };
    let headers = raw.headers.iter();
    Some(Tracing {
        endpoint,
        headers: headers.map(|(name, value)| (name.clone(), value.0.clone())).collect(),
        service_name: raw.service_name.0.clone(),
        sample_millionths: raw.sample.0,
        slow_ms: raw.slow.0,
        keeps_errors: raw.errors,
        has_statements: raw.statements,
        accept: match raw.accept {
            raw::AcceptContext::All => AcceptContext::All,
            raw::AcceptContext::Trusted => AcceptContext::Trusted,
            raw::AcceptContext::None => AcceptContext::None,
        },
        is_compressed: raw.compression == raw::ExportCompression::Gzip,
        buffer_bytes: raw.buffer.0,
        timeout_ms: raw.timeout.0,
        delay_ms: raw.delay.0,
    })
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
