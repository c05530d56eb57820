//! [`Refusal`]: why a request has no other response, and the response that it gets.
//!
//! Returned by handlers, written by [`crate::dispatch`]. Invariant: a refusal is counted and logged exactly
//! once, where it is written.

use crate::app::App;
use crate::request::{Request, ResponseSummary, respond, respond_with, send};
use outboard_development::failure;
use outboard_http_server::{HeaderBlock, ResponseWriter, error_page};
use outboard_log::Reason;
use std::rc::Rc;

/// What a handler returns: its response, or why it has not written one.
pub(crate) type Outcome = Result<ResponseSummary, Refusal>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Refusal {
    reason: Reason,
    /// Most refusals have none.
    details: Option<Box<Details>>,
}

#[derive(Debug, Default)]
struct Details {
    /// For the developer: the page shows it in development.
    hint: Option<String>,
    /// Fields of the response.
    fields: HeaderBlock,
    /// The page; `None`: that of the app for the status, or the built-in one.
    page: Option<Rc<[u8]>>,
    form: Form,
}

/// What the client is sent.
#[derive(Debug, Default, PartialEq, Eq)]
enum Form {
    /// A page.
    #[default]
    Page,
    /// Plain text, for a program.
    Text,
    /// No body, and no line in the log either: each would add to an overload.
    Overload,
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self { reason, details: None }
    }
}

impl Refusal {
    fn with(reason: Reason, details: Details) -> Self {
        Self { reason, details: Some(Box::new(details)) }
    }

    /// With a hint for the developer.
    pub(crate) fn with_hint(reason: Reason, hint: Option<String>) -> Self {
        Self::with(reason, Details { hint, ..Details::default() })
    }

    /// With header fields.
    pub(crate) fn with_fields(reason: Reason, fields: HeaderBlock) -> Self {
        Self::with(reason, Details { fields, ..Details::default() })
    }

    /// With header fields and a page of its own.
    pub(crate) fn with_page(reason: Reason, fields: HeaderBlock, page: Option<Rc<[u8]>>) -> Self {
        Self::with(reason, Details { fields, page, ..Details::default() })
    }

    /// In plain text.
    pub(crate) fn text(reason: Reason) -> Self {
        Self::with(reason, Details { form: Form::Text, ..Details::default() })
    }

    /// Without a body and a line in the log, which would add to an overload.
    pub(crate) fn overload(reason: Reason) -> Self {
        Self::with(reason, Details { form: Form::Overload, ..Details::default() })
    }

    /// Counts and logs it, and writes its response.
    pub(crate) async fn respond(
        self,
        request: &Request<'_>,
        response: &mut ResponseWriter,
        app: Option<&App>,
    ) -> ResponseSummary {
        let Self { reason, details } = self;
        let Details { hint, fields, page, form } =
            details.map_or_else(Details::default, |boxed| *boxed);
        let gateway = &request.gateway;
        if form != Form::Overload {
            gateway.log_refusal(app, request.request_id, reason, &request.describe());
        }
        gateway.server.count_refusal(reason);
        if matches!(reason, Reason::ClientGone | Reason::WriteTimeout | Reason::BodyCut) {
            return ResponseSummary::broken(reason.status(), 0);
        }
        let names_reason = form != Form::Page || gateway.generation().config.names_reasons;
        let mut headers = error_page::headers(reason, names_reason);
        headers.bytes.extend_from_slice(&fields.bytes);
        if let Some(page) = page {
            return respond_with(request, response, app, reason.status(), headers, &page).await;
        }
        match form {
            Form::Page => {
                let mut page = error_page::of_reason(reason, names_reason);
                if let Some(hint) = hint.filter(|_| gateway.development().is_some()) {
                    page += &format!("<p>{}</p>\n", failure::escape(&hint));
                }
                respond(request, response, app, reason.status(), headers, &page).await
            }
            Form::Text => {
                headers.remove(b"Content-Type");
                let kind = headers.add(b"Content-Type", b"text/plain; charset=utf-8");
                kind.expect("a constant header");
                let line = format!("{}: {}\n", reason.code(), reason.text());
                send(response, reason.status(), &headers, line.as_bytes()).await
            }
            Form::Overload => {
                headers.remove(b"Content-Type");
                send(response, reason.status(), &headers, b"").await
            }
        }
    }
}

#[cfg(test)]
mod tests;
