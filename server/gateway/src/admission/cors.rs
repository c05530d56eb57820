//! Cross-origin requests (CORS, Fetch Standard 3.3).
//!
//! Called for requests whose rules have origins. Invariants: the rule alone decides, fields of PHP and
//! upstreams are removed; a preflight is answered without credentials, which it never has, and reaches
//! neither PHP nor a password.

use crate::app::App;
use crate::request::{Request, ResponseSummary, send};
use outboard_config::{Cors, RuleSet};
use outboard_http_server::{HeaderBlock, ResponseFields, ResponseWriter};
use outboard_http1::{Method, RequestHead};
use std::rc::Rc;

/// Responds to a preflight; otherwise `None`, and the response gets its fields.
pub(super) async fn try_respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    rules: RuleSet,
) -> Option<ResponseSummary> {
    // The last rule decides, as the most specific one is written last.
    let all = rules.indices().filter_map(|index| app.config.access.rules[index].cors.as_ref());
    let cors = all.last()?;
    let is_preflight = request.method() == Method::Options
        && request.header(b"access-control-request-method").is_some();
    let (head, input) = request.head();
    let lines = fields(cors, head, input, is_preflight);
    response.set_fields(ResponseFields { lines, replaced: b"access-control-" });
    match is_preflight {
        true => Some(send(response, 204, &HeaderBlock::default(), b"").await),
        false => None,
    }
}

fn fields(cors: &Cors, head: &RequestHead, input: &[u8], is_preflight: bool) -> HeaderBlock {
    let mut lines = HeaderBlock::default();
    let mut add = |name: &str, value: &[u8]| {
        lines.add(name.as_bytes(), value).expect("the values of a valid request and configuration");
    };
    if !cors.admits_all() {
        add("Vary", b"Origin");
    }
    let origin = head.only_header(input, b"origin");
    let Some(origin) = origin.filter(|origin| cors.admits(origin)) else { return lines };
    add("Access-Control-Allow-Origin", if cors.admits_all() { b"*" } else { origin });
    if cors.credentials {
        add("Access-Control-Allow-Credentials", b"true");
    }
    if is_preflight {
        add("Access-Control-Allow-Methods", cors.methods.as_bytes());
        if !cors.headers.is_empty() {
            add("Access-Control-Allow-Headers", cors.headers.as_bytes());
        }
        add("Access-Control-Max-Age", cors.max_age_s.to_string().as_bytes());
    } else if !cors.expose.is_empty() {
        add("Access-Control-Expose-Headers", cors.expose.as_bytes());
    }
    lines
}
