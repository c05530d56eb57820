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
    FIELD_COUNT, Field, Fixed, RequestParts, RequestView, TraceDetail, encode, request_id_text,
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
    /// Whether requests of direct connections may be like this one.
    pub(super) is_template: bool,
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
    let server_name = server_name(host, server_addr.as_bytes());
    let prefix = app.config.path_prefix.trim_end_matches('/').as_bytes();
    let document_root = app.document_root();
    let document_root = document_root.as_os_str().as_encoded_bytes();
    let filename = filename(app, document_root, script);
    let name = joined(prefix, &script.path);
    let request_id = request_id_text(request.request_id);
    let client_ip = request.forwarded.client.as_deref().unwrap_or(&request.client.peer.text);
    let query = script.query.as_deref().or(head.query(input)).unwrap_or_default();

    // In worker mode the script identifies a part by the target only.
    let part = extra.part.filter(|_| app.worker_script.is_some());
    let part_target = part.map(|part| target_of(prefix, part));
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

    let fixed = fixed(request, content_length, server_port, &extra);
    let params = params(request, app, extra.params);
    frame.reserve(request.head_bytes() + 512);
    let kept = KeptHeaders::of(request, &extra);
    let headers = head.headers(input).filter(|(name, _)| kept.has(name));
    // The application builds its links from the host that the client sent to the proxy. A host in
    // the target precedes the header (RFC 9112 3.2.2).
    let headers = headers.map(|(name, value)| match stated_host {
        Some(host) if name.eq_ignore_ascii_case(b"host") => (name, host),
        _ => (name, value),
    });
    // HTTP/1.0 may omit it.
    let missing_host = stated_host.filter(|_| head.header(input, b"host").is_none());
    let parent = extra.trace.map(|scope| scope.context().write());
    let state = extra.trace.map_or(&b""[..], |scope| scope.recording().state());
    let own = own_headers(missing_host, request.is_early, parent.as_ref().map(|it| &it[..]), state);
    let conditions = extra.for_cache.unwrap_or_default().iter();
    let headers = headers.chain(conditions.map(|(name, value)| (&name[..], &value[..])));
    let headers = headers.chain(own);
    encode(RequestParts { fixed, fields, headers, params }, &mut frame);
    frame
}

/// The script of the request, or that of the worker.
fn filename<'a>(app: &'a App, document_root: &[u8], script: &Script) -> Cow<'a, [u8]> {
    match &app.worker_script {
        Some(worker_script) => Cow::Borrowed(&worker_script[..]),
        None => Cow::Owned([document_root, &script.path].concat()),
    }
}

fn fixed(
    request: &Request<'_>,
    content_length: Option<u64>,
    server_port: u16,
    extra: &Extra<'_>,
) -> Fixed {
    Fixed {
        content_length,
        received_us: request.started.unix_us,
        remote_port: request.client.peer.port(),
        server_port,
        is_template: extra.is_template,
        trace_detail: extra.trace.map_or(TraceDetail::None, |scope| trace_detail(request, scope)),
        ..Fixed::default()
    }
}

/// Headers that the gateway adds to those of the client.
fn own_headers<'a>(
    missing_host: Option<&'a [u8]>,
    is_early: bool,
    parent: Option<&'a [u8]>,
    state: &'a [u8],
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let own: [Option<(&[u8], &[u8])>; 4] = [
        missing_host.map(|host| (&b"Host"[..], host)),
        is_early.then_some((b"Early-Data", b"1")),
        parent.map(|parent| (&b"traceparent"[..], parent)),
        (!state.is_empty()).then_some((b"tracestate", state)),
    ];
    own.into_iter().flatten()
}

/// Which headers of the client the script gets.
struct KeptHeaders {
    /// With a trusted proxy configured, claims of other peers are false. Without one, scripts get the same headers as
    /// under php-fpm, and must not trust them.
    bypasses_proxy: bool,
    /// RFC 8470 5.1.
    is_early_known: bool,
    is_part: bool,
    is_for_cache: bool,
    is_traced: bool,
}

impl KeptHeaders {
    fn of(request: &Request<'_>, extra: &Extra<'_>) -> Self {
        let forwarding = &request.client.listener.forwarding;
        let is_trusted = request.client.peer.is_trusted(forwarding);
        Self {
            bypasses_proxy: forwarding.has_proxies() && !is_trusted,
            is_early_known: is_trusted && !request.is_early,
            is_part: extra.part.is_some(),
            is_for_cache: extra.for_cache.is_some(),
            is_traced: request.trace.is_some(),
        }
    }

    fn has(&self, name: &[u8]) -> bool {
        !(http_server::is_ambiguous(name)
            || self.bypasses_proxy && http_server::is_claim(name)
            || !self.is_early_known && http_server::is_early_data(name)
            || self.is_part && is_about_representation(name)
            || self.is_for_cache && outboard_page_cache::is_replaced(name)
            || self.is_traced && is_trace_context(name))
    }
}

/// As nginx's $host: one.test. is one.test.
fn server_name<'a>(host: &'a [u8], address: &'a [u8]) -> &'a [u8] {
    let name = split_host_port(host).0;
    match name.strip_suffix(b".").unwrap_or(name) {
        b"" => address,
        name => name,
    }
}

/// The target of a part of a page.
fn target_of(prefix: &[u8], part: &SubRequest<'_>) -> Vec<u8> {
    let mark: &[u8] = if part.query.is_empty() { b"" } else { b"?" };
    [prefix, part.path, mark, part.query].concat()
}

/// Entries of `$_SERVER` besides those of the protocol: of the configuration, of the route and of TLS.
fn params<'a>(
    request: &'a Request<'_>,
    app: &'a App,
    route: &'a [(Vec<u8>, Vec<u8>)],
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let own = app.config.php.params.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let route = route.iter().map(|(name, value)| (&name[..], &value[..]));
    let tls = request.client.peer.tls.iter().flat_map(|facts| facts.variables());
    own.chain(route).chain(tls.map(|(name, value)| (name.as_bytes(), value.as_bytes())))
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

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: KeptHeaders = KeptHeaders {
        bypasses_proxy: false,
        is_early_known: true,
        is_part: false,
        is_for_cache: false,
        is_traced: false,
    };

    #[test]
    fn headers_of_the_gateway_and_of_the_proxy_are_not_those_of_clients() {
        let claims = [&b"x-forwarded-for"[..], b"X-Forwarded-Proto", b"Forwarded"];
        let bypasses_proxy = KeptHeaders { bypasses_proxy: true, ..ALL };
        for claim in claims {
            assert!(ALL.has(claim) && !bypasses_proxy.has(claim));
        }
        let is_early_known = KeptHeaders { is_early_known: false, ..ALL };
        assert!(ALL.has(b"Early-Data") && !is_early_known.has(b"early-data"));
        let is_traced = KeptHeaders { is_traced: true, ..ALL };
        for name in [&b"traceparent"[..], b"tracestate"] {
            assert!(ALL.has(name) && !is_traced.has(name));
        }
        // A name that CGI cannot tell from another one.
        assert!(!ALL.has(b"X_Forwarded_For"));
    }

    #[test]
    fn a_part_and_a_page_for_the_cache_are_whole() {
        let is_part = KeptHeaders { is_part: true, ..ALL };
        let is_for_cache = KeptHeaders { is_for_cache: true, ..ALL };
        for name in [&b"If-None-Match"[..], b"range"] {
            assert!(ALL.has(name));
            assert!(!is_part.has(name), "part");
            assert!(!is_for_cache.has(name), "cache");
        }
        for kept in [&ALL, &is_part, &is_for_cache] {
            assert!(kept.has(b"Cookie") && kept.has(b"Accept-Language"));
        }
    }

    #[test]
    fn the_target_of_a_part_is_below_the_prefix() {
        let part = |query| SubRequest { path: b"/menu", query };
        assert_eq!(target_of(b"/shop", &part(b"")), b"/shop/menu");
        assert_eq!(target_of(b"", &part(b"a=1")), b"/menu?a=1");
    }
}
