//! [`Origin`]: the source of a response, a script or another server.
//!
//! Used by [`crate::dispatch`] and by the page cache, which need not distinguish the two.

mod sendfile;

use crate::app::App;
use crate::cache_requirements::{CacheRequirements, OwnField};
use crate::proxy::{self, Outgoing};
use crate::refusal::Outcome;
use crate::request::{Request, respond_with_failure};
use crate::response_head::ResponseHead;
use crate::route::{Proxied, Script};
use crate::script;
use outboard_http_server::ResponseWriter;
use outboard_log::Reason;
use outboard_ring::request::RequestView;
use outboard_upstream::RequestHeaders;
use std::rc::Rc;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A script of the app.
    Script(Script),
    /// Another server.
    Upstream(Proxied),
}

/// A response whose head has arrived.
#[derive(Debug)]
pub(crate) enum StartedResponse {
    Script(script::StartedResponse),
    Upstream(Box<proxy::StartedResponse>),
}

/// A request that can be sent without its connection.
#[derive(Debug, Clone)]
pub(crate) enum Prepared {
    /// A frame for a worker.
    Script(Vec<u8>),
    Upstream(Box<Outgoing>),
}

/// Responds with the response of an origin.
///
/// # Errors
/// Why there is no response.
pub(crate) async fn respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    origin: &Origin,
) -> Outcome {
    let mut started = origin.start(request, response, app, None).await?;
    if let StartedResponse::Script(script) = &mut started
        && let Some(message) = script.failure(request).await
    {
        let status = script.head().status;
        let page = respond_with_failure(request, response, status, &message);
        return Ok(Box::pin(page).await);
    }
    started.send(request, response, app, origin).await
}

impl Origin {
    /// Sends the request and waits for the head; for a cache, for as much of the body as it can
    /// store.
    ///
    /// # Errors
    /// Why there is no response.
    pub(crate) async fn start(
        &self,
        request: &Request<'_>,
        response: &mut ResponseWriter,
        app: &Rc<App>,
        for_cache: Option<&CacheRequirements>,
    ) -> Result<StartedResponse, Reason> {
        match self {
            Self::Script(script) => {
                let started = script::start(request, response, app, script, for_cache).await?;
                Ok(StartedResponse::Script(started))
            }
            Self::Upstream(proxied) => {
                // Boxed, so that this larger future does not enlarge the task of every request.
                let started = Box::pin(proxy::start(request, response, app, proxied, for_cache));
                Ok(StartedResponse::Upstream(Box::new(started.await?)))
            }
        }
    }

    /// The current request, as a GET for the complete page; `None` if it is invalid.
    pub(crate) fn prepare(
        &self,
        request: &Request<'_>,
        app: &Rc<App>,
        requirements: &CacheRequirements,
    ) -> Option<Prepared> {
        match self {
            Self::Script(script) => {
                let frame = script::frame_for_cache(request, app, script, requirements);
                Some(Prepared::Script(frame))
            }
            Self::Upstream(proxied) => {
                let outgoing = proxy::request_for_cache(request, app, proxied, requirements);
                Some(Prepared::Upstream(Box::new(outgoing.ok()?)))
            }
        }
    }
}

impl Prepared {
    /// The header fields.
    pub(crate) fn fields(&self) -> Vec<OwnField> {
        let own = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
        match self {
            Self::Script(frame) => {
                let view = RequestView::decode(frame).expect("this process encoded the frame");
                view.headers().map(own).collect()
            }
            Self::Upstream(outgoing) => outgoing.request.headers.iter().map(own).collect(),
        }
    }

    /// The same request with other header fields.
    pub(crate) fn with_fields(&self, fields: &[OwnField]) -> Self {
        match self {
            Self::Script(frame) => Self::Script(script::with_headers(frame, fields)),
            Self::Upstream(outgoing) => {
                let mut outgoing = outgoing.clone();
                outgoing.request.headers = RequestHeaders::default();
                for (name, value) in fields {
                    // They are fields of valid requests.
                    let _ = outgoing.request.headers.add(name, value);
                }
                Self::Upstream(outgoing)
            }
        }
    }

    /// Sends the request; `None` if the page is longer than `whole_bytes`.
    ///
    /// # Errors
    /// Why there is no response.
    pub(crate) async fn render(
        self,
        app: &Rc<App>,
        request_id: u64,
        path: &[u8],
        whole_bytes: usize,
    ) -> Result<Option<(ResponseHead, Vec<u8>)>, Reason> {
        match self {
            Self::Script(frame) => script::render(app, frame, request_id, path, whole_bytes).await,
            Self::Upstream(outgoing) => {
                proxy::render(app, *outgoing, request_id, path, whole_bytes).await
            }
        }
    }
}

impl StartedResponse {
    pub(crate) fn head(&self) -> &ResponseHead {
        match self {
            Self::Script(started) => started.head(),
            Self::Upstream(started) => &started.head,
        }
    }

    pub(crate) fn head_mut(&mut self) -> &mut ResponseHead {
        match self {
            Self::Script(started) => started.head_mut(),
            Self::Upstream(started) => &mut started.head,
        }
    }

    /// Whether a complete response is not what its script meant.
    pub(crate) fn is_unhandled(&self) -> bool {
        matches!(self, Self::Script(started) if started.is_unhandled())
    }

    /// The body, if it is complete.
    pub(crate) fn whole_body(&self) -> Option<&[u8]> {
        match self {
            Self::Script(started) => started.whole_body(),
            Self::Upstream(started) => started.whole_body(),
        }
    }

    /// The length of the body so far.
    pub(crate) fn body_bytes(&self) -> usize {
        match self {
            Self::Script(started) => started.body_bytes(),
            Self::Upstream(started) => started.body_bytes(),
        }
    }

    /// Sends it to the client.
    pub(crate) async fn send(
        self,
        request: &Request<'_>,
        response: &mut ResponseWriter,
        app: &Rc<App>,
        origin: &Origin,
    ) -> Outcome {
        match (self, origin) {
            (Self::Script(mut started), Origin::Script(script)) => {
                match started.head_mut().sendfile.take() {
                    Some(order) => {
                        let head = std::mem::take(started.head_mut());
                        // Boxed: it is rare, and its size would be part of every connection's.
                        Box::pin(sendfile::respond(request, response, app, script, head, order))
                            .await
                    }
                    None => Ok(started.send(request, response, app).await?),
                }
            }
            (Self::Upstream(started), _) => {
                Ok(Box::pin(started.send(request, response, app)).await)
            }
            (Self::Script(_), Origin::Upstream(_)) => Err(Reason::Internal.into()),
        }
    }
}
