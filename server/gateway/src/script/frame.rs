//! The request frame, from which the host builds `$_SERVER`.
//!
//! Called by [`super`]. Invariant: behind a configured proxy, claims about the client come only
//! from that proxy.

use super::SubRequest;
use crate::app::App;
use crate::cache_requirements::{OwnField, is_about_representation};
use crate::request::Request;
use crate::route::Script;
use outboard_http_server as http_server;

use outboard_http1::split_host_port;
use outboard_operations::is_trace_context;
use outboard_ring::request::{
    FIELD_COUNT, Field, Fixed, RequestParts, RequestView, TraceDetail, encode,
};
use outboard_trace::Scope;
use std::borrow::Cow;

/// The additions to the client's request.
pub(super) struct Extra<'a> {
    /// Further entries of `$_SERVER`.
    pub(super) params: &'a [(Vec<u8>, Vec<u8>)],
    /// The part of a page that the script renders; it does not get headers about the complete
    /// response.
    pub(super) part: Option<&'a SubRequest<'a>>,
    /// The span of PHP, whose context the script gets.
    pub(super) trace: Option<&'a Scope>,
    /// The conditions of the page cache, which replace those of the client: it requires the
    /// complete page, or a confirmation of the stored one.
    pub(super) for_cache: Option<&'a [OwnField]>,
}

/// Encodes the current request for the worker, in an empty buffer.
pub(super) fn request(
    mut frame: Vec<u8>,
    request: &Request<'_>,
    app: &App,
    script: &Script,
    content_length: Option<u64>,
    extra: Extra<'_>,
) -> Vec<u8> {
    let (head, input) = request.head();
    let (server_addr, server_port) = request.client.peer.local(&request.client.transport);
    let host = request.forwarded.host.as_deref().or(head.host(input)).unwrap_or_default();
    let server_port = request.forwarded.port.unwrap_or(server_port);
    // As nginx's $host: one.test. is one.test.
    let name = split_host_port(host).0;
    let server_name = match name.strip_suffix(b".").unwrap_or(name) {
        b"" => server_addr.as_bytes(),
        name => name,
    };
    let prefix = app.config.path_prefix.trim_end_matches('/').as_bytes();
    let document_root = app.document_root();
    let document_root = document_root.as_os_str().as_encoded_bytes();
    let filename = match &app.worker_script {
        Some(worker_script) => Cow::Borrowed(&worker_script[..]),
        None => Cow::Owned([document_root, &script.path].concat()),
    };
    let name = joined(prefix, &script.path);
    let request_id = hex(request.request_id);
    let client_ip = request.forwarded.client.as_deref().unwrap_or(&request.client.peer.text);
    let query = script.query.as_deref().or(head.query(input)).unwrap_or_default();

    // In worker mode the script identifies a part by the target only.
    let part_target = extra.part.filter(|_| app.worker_script.is_some()).map(|part| {
        let mark: &[u8] = if part.query.is_empty() { b"" } else { b"?" };
        [prefix, part.path, mark, part.query].concat()
    });

    // As nginx's $request_uri: without scheme and authority.
    let target = head.origin_form(input);
    let stated_host = request.forwarded.host.as_deref().or(head.target_authority(input));

    let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
    let mut set = |field: Field, value| fields[field as usize] = value;
    set(Field::Method, if script.internal { b"GET" } else { head.method(input) });
    set(Field::Uri, part_target.as_deref().unwrap_or(&target));
    set(Field::Query, query);
    set(Field::ScriptFilename, &filename);
    set(Field::ScriptName, &name);
    set(Field::PathInfo, &script.path_info);
    set(Field::DocumentRoot, document_root);
    set(Field::DocumentUri, &name);
    set(Field::Protocol, request.protocol().as_bytes());
    set(Field::ContentType, head.header(input, b"content-type").unwrap_or_default());
    set(Field::RemoteAddr, client_ip.as_bytes());
    set(Field::ServerAddr, server_addr.as_bytes());
    set(Field::ServerName, server_name);
    set(Field::Scheme, if request.forwarded.https { b"https" } else { b"http" });
    set(Field::RequestId, &request_id);

    let fixed = Fixed {
        content_length,
        received_us: request.started.unix_us,
        remote_port: request.client.peer.port(),
        server_port,
        trace_detail: extra.trace.map_or(TraceDetail::None, |scope| trace_detail(request, scope)),
        ..Fixed::default()
    };
    let params =
        app.config.php.params.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let params = params.chain(extra.params.iter().map(|(name, value)| (&name[..], &value[..])));
    let tls = request.client.peer.tls.iter().flat_map(|facts| facts.variables());
    let params = params.chain(tls.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    frame.reserve(request.head_bytes() + 512);
    let headers = head.headers(input).filter(|(name, _)| !http_server::is_ambiguous(name));
    // With a trusted proxy configured, claims of other peers are false. Without one, scripts get
    // the same headers as under php-fpm, and must not trust them.
    let forwarding = &request.client.listener.forwarding;
    let bypasses_proxy = forwarding.has_proxies() && !request.client.peer.is_trusted(forwarding);
    let headers = headers.filter(|(name, _)| !(bypasses_proxy && http_server::is_claim(name)));
    // RFC 8470 5.1.
    let is_early_known = request.client.peer.is_trusted(forwarding) && !request.is_early;
    let headers = headers.filter(|(name, _)| is_early_known || !http_server::is_early_data(name));
    let headers =
        headers.filter(|(name, _)| !(extra.part.is_some() && is_about_representation(name)));
    let headers = headers
        .filter(|(name, _)| !(extra.for_cache.is_some() && outboard_page_cache::is_replaced(name)));
    // The application builds its links from the host that the client sent to the proxy. A host in
    // the target precedes the header (RFC 9112 3.2.2).
    let headers = headers.map(|(name, value)| match stated_host {
        Some(host) if name.eq_ignore_ascii_case(b"host") => (name, host),
        _ => (name, value),
    });
    let is_traced = request.trace.is_some();
    let headers = headers.filter(|(name, _)| !(is_traced && is_trace_context(name)));
    // HTTP/1.0 may omit it.
    let missing_host = stated_host.filter(|_| head.header(input, b"host").is_none());
    let parent = extra.trace.map(|scope| scope.context().write());
    let state = extra.trace.map_or(&b""[..], |scope| scope.recording().state());
    let own: [Option<(&[u8], &[u8])>; 4] = [
        missing_host.map(|host| (&b"Host"[..], host)),
        request.is_early.then_some((b"Early-Data", b"1")),
        parent.as_ref().map(|parent| (&b"traceparent"[..], &parent[..])),
        (!state.is_empty()).then_some((b"tracestate", state)),
    ];
    let conditions = extra.for_cache.unwrap_or_default().iter();
    let headers = headers.chain(conditions.map(|(name, value)| (&name[..], &value[..])));
    let headers = headers.chain(own.into_iter().flatten());
    encode(RequestParts { fixed, fields, headers, params }, &mut frame);
    frame
}

/// What the script has to report.
fn trace_detail(request: &Request<'_>, scope: &Scope) -> TraceDetail {
    let generation = request.gateway.generation();
    generation.tracer.as_ref().map_or(TraceDetail::None, |tracer| tracer.detail(scope))
}

/// A frame with other headers.
pub(crate) fn with_headers(frame: &[u8], headers: &[OwnField]) -> Vec<u8> {
    let view = RequestView::decode(frame).expect("this process encoded the frame");
    let headers = headers.iter().map(|(name, value)| (&name[..], &value[..]));
    let mut changed = Vec::with_capacity(frame.len());
    encode(
        RequestParts { fixed: view.fixed, fields: view.fields(), headers, params: view.params() },
        &mut changed,
    );
    changed
}

/// The concatenation, without a copy if one is empty, as for most requests.
fn joined<'a>(first: &'a [u8], second: &'a [u8]) -> Cow<'a, [u8]> {
    match (first, second) {
        (b"", only) | (only, b"") => Cow::Borrowed(only),
        both => Cow::Owned([both.0, both.1].concat()),
    }
}

/// Sixteen hexadecimal digits.
fn hex(number: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    std::array::from_fn(|at| DIGITS[(number >> (60 - 4 * at)) as usize & 15])
}
