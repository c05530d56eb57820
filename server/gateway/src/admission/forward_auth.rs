//! Forward authentication: another service, or a script of the app, decides about a request, and names its user.
//!
//! Called for requests whose rules have such a service. Invariants: the fields in which the service names the
//! user are removed from every request of the app, whether the service is asked or not, so that no client
//! names itself; a service that does not respond admits nobody.

use crate::app::App;
use crate::proxy::{self, Failure, Outgoing, Sent};
use crate::refusal::Refusal;
use crate::request::{Request, ResponseSummary, send};
use crate::response_head::ResponseHead;
use crate::script::{self, SubRequest};
use outboard_config::{AuthService, ForwardAuth, ProxyTarget, RuleSet};
use outboard_http_server::{ResponseWriter, is_ambiguous, is_claim};
use outboard_http1::is_ambiguous_path;
use outboard_log::Reason;
use outboard_reactor::{now_ms, with_deadline};
use outboard_upstream::{Error, RequestHeaders};
use std::rc::Rc;

/// Of a response that refuses a request.
const BODY_MAX_BYTES: u64 = 256 << 10;

/// Removes the fields in which services name users.
pub(crate) fn remove_identity(request: &mut Request<'_>, app: &App) {
    let names = &app.config.access.identity_headers;
    if !names.is_empty() {
        let is_own =
            |name: &[u8]| names.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name));
        request.remove_fields(is_own);
    }
}

/// Admits a request that every rule's service admits; responds as a service does that does not.
///
/// # Errors
/// No service could be asked.
pub(super) async fn admit(
    request: &mut Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    rules: RuleSet,
) -> Result<Option<ResponseSummary>, Refusal> {
    for index in rules.indices() {
        let Some(service) = &app.config.access.rules[index].forward_auth else { continue };
        if nominates(request, &service.copy_headers) {
            return Err(Reason::BadRequest.into());
        }
        if is_ambiguous_path(request.encoded_path()) {
            // The service may decide about another path than the one that is requested.
            return Err(Reason::BadPath.into());
        }
        let (head, body) = ask(request, app, service).await?;
        if !(200..300).contains(&head.status) {
            let (reason, text) = (Reason::AuthRefused, request.describe());
            request.gateway.log_refusal(Some(app), request.request_id, reason, &text);
            request.gateway.server.count_refusal(reason);
            return Ok(Some(send(response, head.status, &head.headers, &body).await));
        }
        for name in &service.copy_headers {
            // A second rule's service replaces what the first one has said.
            request.remove_fields(|own| own.eq_ignore_ascii_case(name.as_bytes()));
            let lines = head.headers.lines();
            for (found, value) in lines.filter(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()))
            {
                request.insert_field(found, value);
            }
        }
    }
    Ok(None)
}

/// Whether a Connection field names one of the fields, so that a proxy would remove it (RFC 9110 7.6.1): the
/// upstream would not learn who the client is.
fn nominates(request: &Request<'_>, names: &[String]) -> bool {
    let fields = request.headers();
    let mut own = fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"connection"));
    own.any(|(_, value)| {
        let mut nominated = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        nominated.any(|one| names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(one)))
    })
}

async fn ask(
    request: &Request<'_>,
    app: &Rc<App>,
    auth: &ForwardAuth,
) -> Result<(ResponseHead, Vec<u8>), Reason> {
    match &auth.service {
        AuthService::Script(path) => run(request, app, path, auth.timeout_ms).await,
        AuthService::Upstream { to, verifies } => {
            let failed = |error: Error| proxy::log_failure(app, request.request_id, &error);
            let outgoing = outgoing(request, app, (to, *verifies), auth.timeout_ms);
            ask_upstream(request, app, outgoing.map_err(failed)?).await
        }
    }
}

/// The response of a script. It gets the variables of the request, with the method GET.
async fn run(
    request: &Request<'_>,
    app: &Rc<App>,
    path: &str,
    timeout_ms: u64,
) -> Result<(ResponseHead, Vec<u8>), Reason> {
    let params = [
        (b"OUTBOARD_AUTH_METHOD".to_vec(), request.method_name().to_vec()),
        (b"OUTBOARD_AUTH_URI".to_vec(), request.origin_form().to_vec()),
    ];
    let sub = SubRequest { path: path.as_bytes(), query: b"" };
    let lease = script::start_part(request, app, sub, &params)?;
    let response = script::receive(app, lease, path.as_bytes(), BODY_MAX_BYTES as usize);
    let response =
        request.client.unless_gone(with_deadline(now_ms() + timeout_ms, response)).await?;
    match response {
        Err(_) => Err(Reason::Deadline),
        Ok(response) => response?.ok_or(Reason::BadResponse),
    }
}

async fn ask_upstream(
    request: &Request<'_>,
    app: &Rc<App>,
    outgoing: Outgoing,
) -> Result<(ResponseHead, Vec<u8>), Reason> {
    let exchange = async {
        // The attempt counts for its server until the response is read.
        let Sent { result: mut response, attempt: _attempt } = outgoing.send(app).await?;
        let mut body = Vec::new();
        while !response.is_over() {
            response.read(&mut body).await?;
        }
        Ok::<_, Failure>((response, body))
    };
    let refused = |failure: Failure| {
        proxy::log_failure(app, request.request_id, &failure.error);
        failure.reason()
    };
    let (response, body) = request.client.unless_gone(exchange).await?.map_err(refused)?;
    let head = ResponseHead::of_upstream(response.status, &response.headers);
    Ok((head.map_err(|_| Reason::UpstreamFailed)?, body))
}

/// A GET with the client's fields, and with those that name the request.
fn outgoing(
    request: &Request<'_>,
    app: &App,
    (to, verifies): (&ProxyTarget, bool),
    timeout_ms: u64,
) -> Result<Outgoing, Error> {
    let mut headers = RequestHeaders::default();
    for (name, value) in request.headers().filter(|(name, _)| is_passed_on(name)) {
        headers.add(name, value)?;
    }
    let scheme: &[u8] = if request.forwarded.https { b"https" } else { b"http" };
    headers.add(b"X-Forwarded-For", request.client_address().as_bytes())?;
    headers.add(b"X-Forwarded-Proto", scheme)?;
    headers.add(b"X-Forwarded-Host", request.authority().unwrap_or_default())?;
    headers.add(b"X-Forwarded-Method", request.method_name())?;
    headers.add(b"X-Forwarded-Uri", &request.origin_form())?;
    let mut outgoing = Outgoing::new(app, to, b"")?;
    let request = &mut outgoing.request;
    request.headers = headers;
    request.connect_timeout_ms = timeout_ms;
    request.timeout_ms = timeout_ms;
    request.max_body_bytes = BODY_MAX_BYTES;
    request.max_redirects = 0;
    request.verify = verifies;
    request.decompress = false;
    request.introduces_itself = false;
    request.account = Some(app.upstream_account.clone());
    Ok(outgoing)
}

/// Whether a client's field is for the service: not one about the connection, the body, a condition or a
/// range, and not a claim, which the gateway sets itself.
fn is_passed_on(name: &[u8]) -> bool {
    const OTHERS: [&[u8]; 10] = [
        b"host",
        b"connection",
        b"keep-alive",
        b"upgrade",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"expect",
        b"proxy",
        b"via",
    ];
    let starts =
        |start: &[u8]| name.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
    !OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other))
        && !starts(b"content-")
        && !starts(b"if-")
        && !starts(b"range")
        && !is_ambiguous(name)
        && !is_claim(name)
}
