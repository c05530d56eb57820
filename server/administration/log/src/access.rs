//! The access log: one line per request.

use crate::entry::{AccessEntry, hex};
use crate::format::AccessFormat;
use crate::sink::{Sink, push_escaped};
use crate::timestamp::{Wall, common_log_time, rfc3339};
use serde_json::json;
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

/// Writes access entries.
#[derive(Debug)]
pub struct AccessLog {
    sink: Rc<Sink>,
    format: AccessFormat,
    /// The formatted second, which thousands of entries share.
    stamp: RefCell<(u64, String)>,
}

impl AccessLog {
    /// A log to `sink`.
    pub fn new(sink: Rc<Sink>, format: AccessFormat) -> Self {
        Self { sink, format, stamp: RefCell::new((u64::MAX, String::new())) }
    }

    /// The destination.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// Writes one entry.
    pub fn write(&self, wall: Wall, entry: &AccessEntry<'_>) {
        if self.format == AccessFormat::Json {
            self.sink.line(|out| write_json(out, wall, entry));
            return;
        }
        let mut stamp = self.stamp.borrow_mut();
        if stamp.0 != wall.unix_s() {
            *stamp = (wall.unix_s(), common_log_time(wall));
        }
        self.sink.line(|out| match &self.format {
            AccessFormat::Template(template) => template.write(out, wall, &stamp.1, entry),
            _ => write_combined(out, &stamp.1, entry),
        });
    }
}

fn write_combined(out: &mut Vec<u8>, time: &str, entry: &AccessEntry<'_>) {
    // Writing to a Vec does not fail.
    let _ = write!(out, "{} - - [{time}] \"", entry.client);
    push_escaped(out, entry.method);
    out.push(b' ');
    push_escaped(out, entry.target);
    let _ = write!(out, " {}\" {} {} \"", entry.protocol, entry.status, entry.body_bytes);
    push_escaped(out, or_dash(entry.referer));
    out.extend_from_slice(b"\" \"");
    push_escaped(out, or_dash(entry.user_agent));
    out.push(b'"');
}

fn or_dash(value: &[u8]) -> &[u8] {
    if value.is_empty() { b"-" } else { value }
}

fn write_json(out: &mut Vec<u8>, wall: Wall, entry: &AccessEntry<'_>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let line = json!({
        "time": rfc3339(wall),
        "client": entry.client,
        "method": text(entry.method),
        "target": text(entry.target),
        "protocol": entry.protocol,
        "status": entry.status,
        "body_bytes": entry.body_bytes,
        "duration_us": entry.duration_us,
        "referer": text(entry.referer),
        "user_agent": text(entry.user_agent),
        "request": format!("{:016x}", entry.request),
        "app": entry.app,
        "trace_id": entry.trace.map(|trace| hex(&trace.trace_id)),
        "span_id": entry.trace.map(|trace| hex(&trace.span_id)),
        "tls_protocol": entry.tls.map(|tls| tls.protocol),
        "tls_cipher": entry.tls.map(|tls| tls.cipher),
        "tls_resumed": entry.tls.map(|tls| tls.is_resumed),
        "upstream": entry.upstream,
    });
    let _ = write!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{ENTRY, Headers, TlsEntry, TraceEntry};

    #[test]
    fn the_combined_line_is_what_log_analysers_know() {
        let entry = ENTRY;
        let mut out = Vec::new();
        let wall = Wall { unix_us: 1_795_239_328_000_000 };
        write_combined(&mut out, &common_log_time(wall), &entry);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "192.0.2.1 - - [21/Nov/2026:05:35:28 +0000] \
             \"GET /a?b=\\\"c\\\" HTTP/1.1\" 200 5 \"-\" \"curl/8\""
        );
    }

    #[test]
    fn a_json_line_has_the_tls_session_and_the_trace() {
        let tls =
            TlsEntry { protocol: "TLSv1.3", cipher: "TLS_AES_128_GCM_SHA256", is_resumed: true };
        let line = |tls, trace| {
            let entry = AccessEntry {
                client: "192.0.2.1",
                method: b"GET",
                target: b"/",
                protocol: "HTTP/2.0",
                status: 200,
                body_bytes: 5,
                duration_us: 12,
                headers: Headers::NONE,
                referer: b"",
                user_agent: b"",
                request: 1,
                app: "site",
                trace,
                tls,
                upstream: Some("http://10.0.0.1:80"),
            };
            let mut out = Vec::new();
            write_json(&mut out, Wall { unix_us: 0 }, &entry);
            serde_json::from_slice::<serde_json::Value>(&out).unwrap()
        };
        let trace = TraceEntry { trace_id: [0xab; 16], span_id: [1; 8] };
        let with = line(Some(tls), Some(trace));
        assert_eq!(with["trace_id"], "ab".repeat(16));
        assert_eq!(with["span_id"], "01".repeat(8));
        assert_eq!(with["tls_protocol"], "TLSv1.3");
        assert_eq!(with["tls_cipher"], "TLS_AES_128_GCM_SHA256");
        assert_eq!(with["tls_resumed"], true);
        assert_eq!(with["upstream"], "http://10.0.0.1:80");
        let without = line(None, None);
        assert!(without["trace_id"].is_null() && without["span_id"].is_null());
        assert!(without["tls_protocol"].is_null() && without["tls_resumed"].is_null());
    }
}
