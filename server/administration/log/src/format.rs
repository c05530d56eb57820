//! [`AccessFormat`]: how a line of the access log is written: in the combined format, as JSON, or by a template of one's own.
//!
//! Read by the configuration, used by [`crate::AccessLog`]. Invariant: what a client has sent is escaped in every format, so that
//! a line is one line and a quoted field ends where the template ends it.

use crate::entry::{AccessEntry, hex};
use crate::sink::push_escaped;
use crate::timestamp::Wall;
use std::fmt;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessFormat {
    /// The combined format of Apache and nginx.
    Combined,
    /// One JSON object per line.
    Json,
    /// A text with fields.
    Template(Template),
}

/// A text with fields such as `{client}` and `{header:Host}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
    Header(String),
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidTemplate(String);

macro_rules! fields {
    ($($field:ident = $name:literal,)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Field {
            $($field,)+
        }

        impl Field {
            const NAMES: &[&str] = &[$($name),+];

            fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$field),)+
                    _ => None,
                }
            }
        }
    };
}

fields! {
    Time = "time",
    TimeCommon = "time_common",
    Client = "client",
    Method = "method",
    Target = "target",
    Protocol = "protocol",
    Status = "status",
    BodyBytes = "body_bytes",
    DurationUs = "duration_us",
    DurationS = "duration_s",
    Referer = "referer",
    UserAgent = "user_agent",
    Request = "request",
    App = "app",
    TraceId = "trace_id",
    SpanId = "span_id",
    TlsProtocol = "tls_protocol",
    TlsCipher = "tls_cipher",
    Upstream = "upstream",
}

impl AccessFormat {
    /// Reads `combined`, `json`, or a template.
    ///
    /// # Errors
    /// A template without a field, or with one that is not known.
    pub fn read(text: &str) -> Result<Self, InvalidTemplate> {
        match text {
            "combined" => Ok(Self::Combined),
            "json" => Ok(Self::Json),
            text => Template::read(text).map(Self::Template),
        }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Combined => "combined",
            Self::Json => "json",
            Self::Template(template) => &template.text,
        }
    }
}

impl Template {
    fn read(text: &str) -> Result<Self, InvalidTemplate> {
        if text.chars().any(char::is_control) {
            return Err(InvalidTemplate("a line cannot contain control characters".to_owned()));
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                return Err(InvalidTemplate("`{` has no closing brace".to_owned()));
            };
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::named(name)?);
            rest = after;
        }
        if parts.is_empty() {
            return Err(InvalidTemplate("it has no field such as {client}".to_owned()));
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Appends a line. `time_common` is the time in the combined format.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        wall: Wall,
        time_common: &str,
        entry: &AccessEntry<'_>,
    ) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Header(name) => put(out, entry.headers.get(name.as_bytes())),
                Part::Field(Field::Time) => put(out, wall.rfc3339().as_bytes()),
                Part::Field(Field::TimeCommon) => put(out, time_common.as_bytes()),
                Part::Field(field) => field.write(out, entry),
            }
        }
    }
}

impl Part {
    fn named(name: &str) -> Result<Self, InvalidTemplate> {
        if let Some(header) = name.strip_prefix("header:").filter(|header| !header.is_empty()) {
            return Ok(Self::Header(header.to_owned()));
        }
        Field::named(name).map(Self::Field).ok_or_else(|| {
            let known = Field::NAMES.join(", ");
            InvalidTemplate(format!("`{{{name}}}` is no field: write {known}, or header:NAME"))
        })
    }
}

impl Field {
    fn write(self, out: &mut Vec<u8>, entry: &AccessEntry<'_>) {
        let us = entry.duration_us;
        let tls = |name: fn(&crate::TlsEntry<'_>) -> String| entry.tls.as_ref().map(name);
        let shown = match self {
            Self::Method => return put(out, entry.method),
            Self::Target => return put(out, entry.target),
            Self::Referer => return put(out, entry.referer),
            Self::UserAgent => return put(out, entry.user_agent),
            Self::Time | Self::TimeCommon => return,
            Self::Client => entry.client.to_owned(),
            Self::Protocol => entry.protocol.to_owned(),
            Self::Status => entry.status.to_string(),
            Self::BodyBytes => entry.body_bytes.to_string(),
            Self::DurationUs => us.to_string(),
            Self::DurationS => format!("{}.{:03}", us / 1_000_000, us / 1_000 % 1_000),
            Self::Request => format!("{:016x}", entry.request),
            Self::App => entry.app.to_owned(),
            Self::TraceId => entry.trace.map(|trace| hex(&trace.trace_id)).unwrap_or_default(),
            Self::SpanId => entry.trace.map(|trace| hex(&trace.span_id)).unwrap_or_default(),
            Self::TlsProtocol => tls(|tls| tls.protocol.to_owned()).unwrap_or_default(),
            Self::TlsCipher => tls(|tls| tls.cipher.to_owned()).unwrap_or_default(),
            Self::Upstream => entry.upstream.unwrap_or_default().to_owned(),
        };
        put(out, shown.as_bytes());
    }
}

/// A value; a hyphen if there is none.
fn put(out: &mut Vec<u8>, value: &[u8]) {
    match value {
        b"" => out.push(b'-'),
        value => push_escaped(out, value),
    }
}

impl fmt::Display for InvalidTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for InvalidTemplate {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{ENTRY, Headers, TlsEntry, TraceEntry};
    use crate::timestamp::common_log_time;

    fn line(text: &str, entry: &AccessEntry<'_>) -> String {
        let AccessFormat::Template(template) = AccessFormat::read(text).unwrap() else {
            panic!("{text} is a template")
        };
        let (mut out, wall) = (Vec::new(), Wall { unix_us: 1_795_239_328_000_000 });
        template.write(&mut out, wall, &common_log_time(wall), entry);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_written_by_a_template() {
        let field = |name: &[u8]| (name == b"Host").then_some(&b"a\"b\n"[..]);
        let entry = AccessEntry { headers: Headers(&field), ..ENTRY };
        assert_eq!(
            line(
                "{client} [{time_common}] \"{header:Host}\" {status}/{duration_s} {upstream}.",
                &entry
            ),
            "192.0.2.1 [21/Nov/2026:05:35:28 +0000] \"a\\\"b\\x0a\" 200/1.234 -."
        );
        assert_eq!(line("{time} {request}", &entry), "2026-11-21T05:35:28.000Z 0000000000000001");
        assert_eq!(line("{header:X-None}{target}", &entry), "-/a?b=\\\"c\\\"");
    }

    #[test]
    fn the_combined_format_can_be_written_as_a_template() {
        let template = "{client} - - [{time_common}] \"{method} {target} {protocol}\" {status} \
                        {body_bytes} \"{referer}\" \"{user_agent}\"";
        let combined = "192.0.2.1 - - [21/Nov/2026:05:35:28 +0000] \
                        \"GET /a?b=\\\"c\\\" HTTP/1.1\" 200 5 \"-\" \"curl/8\"";
        assert_eq!(line(template, &ENTRY), combined);
    }

    #[test]
    fn every_field_has_a_value_where_there_is_one() {
        let tls = TlsEntry { protocol: "TLSv1.3", cipher: "TLS_AES", is_resumed: false };
        let trace = TraceEntry { trace_id: [1; 16], span_id: [2; 8] };
        let entry = AccessEntry {
            tls: Some(tls),
            trace: Some(trace),
            upstream: Some("http://a"),
            referer: b"r",
            ..ENTRY
        };
        for name in Field::NAMES {
            let value = line(&format!("{{{name}}}"), &entry);
            assert!(!value.is_empty() && value != "-", "{name}: {value}");
        }
        assert_eq!(line("{tls_protocol} {span_id}", &entry), "TLSv1.3 0202020202020202");
    }

    #[test]
    fn an_invalid_template_is_refused_with_the_reason() {
        for (bad, why) in [
            ("", "no field"),
            ("text", "no field"),
            ("{client", "closing brace"),
            ("{clients}", "`{clients}` is no field: write time,"),
            ("{header:}", "no field"),
            ("{client}\n", "control"),
        ] {
            let error = AccessFormat::read(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
        for good in ["combined", "json", "a {client} b"] {
            assert_eq!(AccessFormat::read(good).unwrap().as_str(), good);
        }
    }
}
