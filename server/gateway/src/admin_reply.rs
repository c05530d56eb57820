//! Replies of the admin API, as JSON.
//!
//! Called by [`crate::admin`] and by the handlers of its endpoints.

use outboard_admin_api::Failure;
use outboard_http_server::{HeaderBlock, ResponseWriter, Written};
use serde::Serialize;

const JSON: &str = "application/json";

/// Why an admin request has no reply.
pub(crate) struct Refusal {
    /// 400, 404, 409 or 5xx.
    pub(crate) status: u16,
    /// One sentence.
    pub(crate) error: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }
}

/// Status, content type and body of a response.
pub(crate) type Response = (u16, &'static str, Vec<u8>);

/// A reply or a refusal as JSON.
pub(crate) fn render<T: Serialize>(reply: Result<T, Refusal>) -> Response {
    match reply {
        Ok(reply) => json(200, &reply),
        Err(Refusal { status, error }) => json(status, &Failure { error }),
    }
}

pub(crate) fn json(status: u16, body: &impl Serialize) -> Response {
    let mut bytes = serde_json::to_vec(body).expect("replies have text keys only");
    bytes.push(b'\n');
    (status, JSON, bytes)
}

/// Writes a response of the admin API.
pub(crate) async fn send(
    response: &mut ResponseWriter,
    status: u16,
    kind: &str,
    body: &[u8],
) -> Written {
    let headers = HeaderBlock::constant(&[("Content-Type", kind)]);
    response.respond(status, &headers, body).await
}
