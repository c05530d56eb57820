//! `[tracing]`: traces in the format of OpenTelemetry.

use super::table::table;
use crate::scalar::{
    As, ByteSize, HeaderName, HeaderValue, OrEmpty, Pairs, Period, PlainText, Portion, Scalar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

table! {
    /// Traces of requests, exported to a collector by OTLP over HTTP.
    #[derive(PartialEq, Eq)]
    pub struct Tracing {
        /// URL of the collector, such as `"http://127.0.0.1:4318"`. Without a path, `/v1/traces` is
        /// appended. Default: none; then no request is traced.
        #[schemars(extend("x-alias" = ["otel_exporter", "OTEL_EXPORTER_OTLP_ENDPOINT", "url", "to"]))]
        #[serde(with = "As::<OrEmpty<PlainText>>")]
        pub endpoint: String = String::new(),
        /// Header fields of exports, such as `Authorization`.
        #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }, "x-alias" = ["OTEL_EXPORTER_OTLP_HEADERS"]))]
        #[serde(with = "As::<Pairs<HeaderValue>>")]
        pub headers: Vec<(String, String)> = Vec::new(),
        /// The attribute `service.name` of all spans.
        #[schemars(extend("x-alias" = ["otel_service_name", "OTEL_SERVICE_NAME"]))]
        #[serde(with = "As::<PlainText>")]
        pub service_name: String = "outboard".to_owned(),
        /// Share of the requests that are exported. A request that is part of a trace is exported if its
        /// caller's span is.
        #[schemars(extend("x-alias" = ["otel_trace", "sampling", "sampler", "OTEL_TRACES_SAMPLER_ARG"]))]
        #[serde(rename = "sample", with = "As::<Portion>")]
        pub sample_millionths: u32 = 10_000,
        /// Requests that take longer are exported in any case. `0`: none.
        #[serde(rename = "slow", with = "As::<Period>")]
        pub slow_ms: u64 = 1_000,
        /// Whether requests that fail, with a status of 500 or more, are exported in any case.
        #[serde(rename = "errors")]
        pub keeps_errors: bool = true,
        /// Whether the span of a database query has its text. It is what the application sends: with values,
        /// unless they are bound.
        #[schemars(extend("x-alias" = ["db.statement", "db.query.text"]))]
        #[serde(rename = "statements")]
        pub has_statements: bool = false,
        /// Peers whose `traceparent` is continued. A client can have all of its requests exported by it.
        #[schemars(extend("x-alias" = ["otel_trace_context", "propagate", "OTEL_PROPAGATORS"]))]
        pub accept: AcceptContext = AcceptContext::Trusted,
        /// How exports are compressed. gzip makes them five times as small, and takes processor time in the background.
        #[schemars(extend("x-alias" = ["OTEL_EXPORTER_OTLP_COMPRESSION"]))]
        pub compression: ExportCompression = ExportCompression::None,
        /// Maximum memory of spans that were not exported yet. At the limit, further spans are dropped
        /// and counted.
        #[schemars(extend("x-minimum" = "64 KiB", "x-maximum" = "1 GiB"))]
        #[serde(rename = "buffer", with = "As::<ByteSize>")]
        pub buffer_bytes: u64 = 8 << 20,
        /// Maximum time for an export.
        #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["OTEL_EXPORTER_OTLP_TIMEOUT"]))]
        #[serde(rename = "timeout", with = "As::<Period>")]
        pub timeout_ms: u64 = 10_000,
        /// Maximum time that spans wait to be exported together.
        #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["interval", "OTEL_BSP_SCHEDULE_DELAY"]))]
        #[serde(rename = "delay", with = "As::<Period>")]
        pub delay_ms: u64 = 1_000,
    }
}

/// Peers whose trace context is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum AcceptContext {
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
pub enum ExportCompression {
    /// By gzip.
    Gzip,
    /// Not at all.
    None,
}
