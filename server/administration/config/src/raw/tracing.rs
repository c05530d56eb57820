//! `[tracing]`: traces in the format of OpenTelemetry.

use crate::scalar::{ByteSize, HeaderName, HeaderValue, Period, PlainText, Portion, Scalar};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Traces of requests, exported to a collector by OTLP over HTTP.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tracing {
    /// URL of the collector, such as `"http://127.0.0.1:4318"`. Without a path, `/v1/traces` is
    /// appended. Default: none; then no request is traced.
    #[schemars(extend("x-alias" = ["otel_exporter", "OTEL_EXPORTER_OTLP_ENDPOINT", "url", "to"]))]
    pub(crate) endpoint: Option<PlainText>,
    /// Header fields of exports, such as `Authorization`.
    #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }, "x-alias" = ["OTEL_EXPORTER_OTLP_HEADERS"]))]
    pub(crate) headers: BTreeMap<String, HeaderValue>,
    /// The attribute `service.name` of all spans.
    #[schemars(extend("x-alias" = ["otel_service_name", "OTEL_SERVICE_NAME"]))]
    pub(crate) service_name: PlainText,
    /// Share of the requests that are exported. A request that is part of a trace is exported if its
    /// caller's span is.
    #[schemars(extend("x-alias" = ["otel_trace", "sampling", "sampler", "OTEL_TRACES_SAMPLER_ARG"]))]
    pub(crate) sample: Portion,
    /// Requests that take longer are exported in any case. `0`: none.
    pub(crate) slow: Period,
    /// Whether requests that fail, with a status of 500 or more, are exported in any case.
    pub(crate) errors: bool,
    /// Whether the span of a database query has its text. It is what the application sends: with values,
    /// unless they are bound.
    #[schemars(extend("x-alias" = ["db.statement", "db.query.text"]))]
    pub(crate) statements: bool,
    /// Peers whose `traceparent` is continued. A client can have all of its requests exported by it.
    #[schemars(extend("x-alias" = ["otel_trace_context", "propagate", "OTEL_PROPAGATORS"]))]
    pub(crate) accept: AcceptContext,
    /// How exports are compressed. gzip makes them five times as small, and takes processor time in the background.
    #[schemars(extend("x-alias" = ["OTEL_EXPORTER_OTLP_COMPRESSION"]))]
    pub(crate) compression: ExportCompression,
    /// Maximum memory of spans that were not exported yet. At the limit, further spans are dropped
    /// and counted.
    #[schemars(extend("x-minimum" = "64 KiB", "x-maximum" = "1 GiB"))]
    pub(crate) buffer: ByteSize,
    /// Maximum time for an export.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["OTEL_EXPORTER_OTLP_TIMEOUT"]))]
    pub(crate) timeout: Period,
    /// Maximum time that spans wait to be exported together.
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["interval", "OTEL_BSP_SCHEDULE_DELAY"]))]
    pub(crate) delay: Period,
}

/// Peers whose trace context is continued.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum AcceptContext {
    /// Every client.
    All,
    /// The `trusted_proxies`.
    Trusted,
    /// None: every request begins a trace.
    None,
}

/// How exports are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ExportCompression {
    /// By gzip.
    Gzip,
    /// Not at all.
    None,
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: BTreeMap::new(),
            service_name: PlainText("outboard".to_owned()),
            sample: Portion(10_000),
            slow: Period(1_000),
            errors: true,
            statements: false,
            accept: AcceptContext::Trusted,
            compression: ExportCompression::None,
            buffer: ByteSize(8 << 20),
            timeout: Period(10_000),
            delay: Period(1_000),
        }
    }
}
