//! [`Format`]: the formats of metrics, and which one a scraper prefers.

use super::page::Page;
use super::protobuf;
use super::text::{self, Dialect};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    OpenMetrics,
    Protobuf,
}

impl Format {
    /// The format with the highest weight of an `Accept` field (RFC 9110 12.5.1); of several with the same,
    /// the first that is named.
    pub(crate) fn accepted(field: &[u8]) -> Self {
        let field = String::from_utf8_lossy(field).to_ascii_lowercase();
        let ranges = field.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next()?;
            let parameters: Vec<&str> = parts.collect();
            let weight = parameters.iter().find_map(|one| one.strip_prefix("q="));
            let weight: f32 = weight.map_or(Ok(1.0), str::parse).ok()?;
            Some((Self::of(kind, &parameters)?, weight))
        });
        let best = ranges
            .filter(|(_, weight)| *weight > 0.0)
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map_or(Self::Text, |(format, _)| format)
    }

    fn of(kind: &str, parameters: &[&str]) -> Option<Self> {
        let has = |parameter: &str| parameters.contains(&parameter);
        let is_or_missing = |name: &str, known: &[&str]| {
            parameters.iter().all(|one| !one.starts_with(name) || known.contains(one))
        };
        match kind {
            "application/vnd.google.protobuf" => {
                let is_known =
                    has("proto=io.prometheus.client.metricfamily") && has("encoding=delimited");
                is_known.then_some(Self::Protobuf)
            }
            "application/openmetrics-text" => {
                is_or_missing("version=", &["version=1.0.0", "version=0.0.1"])
                    .then_some(Self::OpenMetrics)
            }
            "text/plain" => is_or_missing("version=", &["version=0.0.4"]).then_some(Self::Text),
            "text/*" | "*/*" => Some(Self::Text),
            _ => None,
        }
    }

    /// Its `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }

    pub(super) fn render(self, page: &Page) -> Vec<u8> {
        match self {
            Self::Text => text::render(page, Dialect::Prometheus).into_bytes(),
            Self::OpenMetrics => text::render(page, Dialect::OpenMetrics).into_bytes(),
            Self::Protobuf => protobuf::render(page),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_that_the_scraper_prefers() {
        const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
            application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let native = format!(
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
             encoding=delimited;q=0.7,{PROMETHEUS}"
        );
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("text/html, text/plain", Format::Text),
            ("application/json", Format::Text),
            (PROMETHEUS, Format::OpenMetrics),
            (&native, Format::Protobuf),
            ("application/vnd.google.protobuf", Format::Text),
            ("application/openmetrics-text; version=2.0.0, text/plain;q=0.1", Format::Text),
            ("application/openmetrics-text; q=0, text/plain; q=0.1", Format::Text),
            ("text/plain;q=0.5, APPLICATION/OpenMetrics-Text;q=0.5", Format::Text),
            ("application/openmetrics-text;q=x", Format::Text),
        ] {
            assert_eq!(Format::accepted(accept.as_bytes()), format, "{accept}");
        }
    }
}
