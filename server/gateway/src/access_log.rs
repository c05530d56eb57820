//! The access log lines of requests.
//!
//! Called by [`crate::dispatch`] once per request. Invariant: a line contains only as much of an
//! invalid request as [`MAX_LOGGED_BYTES`].

use crate::app::App;
use crate::generation::Generation;
use crate::request::{Request, ResponseSummary};
use outboard_http_server::Request as HttpRequest;

use outboard_log::{AccessEntry, Headers, Reason, TlsEntry, TraceEntry, Wall};

/// Bytes of an invalid request line in the access log.
const MAX_LOGGED_BYTES: usize = 2 << 10;

/// The line of a request.
pub(crate) fn write(
    request: &Request<'_>,
    app: Option<&App>,
    generation: &Generation,
    summary: &ResponseSummary,
    now: Wall,
) {
    let log = generation.access_log(app);
    if !log.sink().is_on() {
        return;
    }
    let field = |name: &[u8]| request.header(name);
    let headers = Headers(&field);
    let entry = AccessEntry {
        client: request.client_address(),
        method: request.method_name(),
        target: request.target(),
        protocol: request.protocol(),
        status: summary.status,
        body_bytes: summary.body_bytes,
        duration_us: now.unix_us.saturating_sub(request.started.unix_us),
        headers,
        referer: headers.get(b"referer"),
        user_agent: headers.get(b"user-agent"),
        request: request.request_id,
        app: app.map_or("", |app| &app.config.name),
        trace: request.trace.as_ref().map(|scope| TraceEntry {
            trace_id: scope.context().trace_id.bytes(),
            span_id: scope.span_id().bytes(),
        }),
        tls: tls(request),
        upstream: request.server.get().map(|server| server.name()),
    };
    log.write(now, &entry);
}

/// The access log line of a request whose head is invalid, with as much of its first line as
/// arrived.
pub(crate) fn write_refused_head(
    generation: &Generation,
    request: &HttpRequest,
    started: Wall,
    reason: Reason,
) {
    let log = generation.access_log(None);
    if !log.sink().is_on() {
        return;
    }
    let [method, target, protocol] = first_line(request.unread_head());
    let now = Wall::now();
    let entry = AccessEntry {
        client: &request.client.peer.text,
        method,
        target,
        protocol: &protocol.escape_ascii().to_string(),
        status: reason.status(),
        body_bytes: 0,
        duration_us: now.unix_us.saturating_sub(started.unix_us),
        headers: Headers::NONE,
        referer: b"",
        user_agent: b"",
        request: 0,
        app: "",
        trace: None,
        tls: tls(request),
        upstream: None,
    };
    log.write(now, &entry);
}

fn tls(request: &HttpRequest) -> Option<TlsEntry<'_>> {
    let facts = request.client.peer.tls.as_deref()?;
    let (protocol, cipher) = (facts.protocol, facts.cipher);
    Some(TlsEntry { protocol, cipher, is_resumed: facts.is_resumed })
}

/// The three parts of an invalid request line; a missing one is a hyphen.
fn first_line(input: &[u8]) -> [&[u8]; 3] {
    let input = &input[..input.len().min(MAX_LOGGED_BYTES)];
    let line = input.trim_ascii_start().split(|byte| b"\r\n".contains(byte)).next();
    let mut parts = line.unwrap_or_default().splitn(3, |&byte| byte == b' ');
    std::array::from_fn(|_| parts.next().filter(|part| !part.is_empty()).unwrap_or(b"-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_request_line_is_split_into_three_parts() {
        let parts = |input: &str| first_line(input.as_bytes()).map(|part| part.to_vec());
        let expected = |parts: [&str; 3]| parts.map(|part| part.as_bytes().to_vec());
        assert_eq!(parts("GET /a b c\r\nHost: x"), expected(["GET", "/a", "b c"]));
        assert_eq!(parts("\r\nnonsense\nnext"), expected(["nonsense", "-", "-"]));
        assert_eq!(parts(""), expected(["-", "-", "-"]));
        assert_eq!(parts(&"x".repeat(5000))[0].len(), MAX_LOGGED_BYTES);
    }
}
