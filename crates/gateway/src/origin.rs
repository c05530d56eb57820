//! Who makes an answer: a script, or another server.
//!
//! Called by the turn and by the page cache, to which both are the same.

mod sendfile;

use crate::app::App;
use crate::cache_requirements::{CacheRequirements, OwnField};
use crate::proxy;
use crate::request::{RequestContext, ResponseSummary, refuse, respond_with_failure};
use crate::response_head::ResponseHead;
use crate::route::{Proxied, Script};
use crate::script;
use outboard_http_server::Connection;
use outboard_log::Reason;
use outboard_ring::request::RequestView;
use outboard_upstream::{Request, RequestHeaders};
use std::rc::Rc;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A script of the app.
    Script(Script),
    /// Another server.
    Upstream(Proxied),
}

/// An answer whose head has come.
#[derive(Debug)]
pub(crate) enum Begun {
    Script(Box<script::Begun>),
    Upstream(Box<proxy::Begun>),
}

/// The present request as something that can be asked without its connection.
#[derive(Debug, Clone)]
pub(crate) enum Prepared {
    /// A frame for a worker.
    Script(Vec<u8>),
    Upstream(Box<Request>),
}

/// Has a request answered.
pub(crate) async fn answer(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    origin: &Origin,
) -> ResponseSummary {
    match origin.begin(connection, ctx, app, None).await {
        Ok(mut begun) => {
            if let Begun::Script(script) = &mut begun
                && let Some(words) = script.failure(connection, ctx).await
            {
                return respond_with_failure(connection, ctx, script.head.status, &words).await;
            }
            begun.send(connection, ctx, app, origin).await
        }
        Err(reason) => refuse(connection, ctx, Some(app), reason).await,
    }
}

impl Origin {
    /// Has the answer made until its head has come; for a cache, until all has come that it takes.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) async fn begin(
        &self,
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &Rc<App>,
        for_cache: Option<&CacheRequirements>,
    ) -> Result<Begun, Reason> {
        match self {
            Self::Script(script) => {
                let begun = script::begin_answer(connection, ctx, app, script, for_cache).await?;
                Ok(Begun::Script(Box::new(begun)))
            }
            Self::Upstream(proxied) => {
                // Rare beside scripts, and larger: not a part of every request's task.
                let begun = Box::pin(proxy::begin(connection, ctx, app, proxied, for_cache));
                Ok(Begun::Upstream(Box::new(begun.await?)))
            }
        }
    }

    /// The present request, as a GET for the whole page; `None` if it cannot be asked.
    pub(crate) fn prepare(
        &self,
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &Rc<App>,
        wish: &CacheRequirements,
    ) -> Option<Prepared> {
        match self {
            Self::Script(script) => {
                let frame = script::frame_for_cache(connection, ctx, app, script, wish);
                Some(Prepared::Script(frame))
            }
            Self::Upstream(proxied) => {
                let request = proxy::request_for_cache(connection, ctx, app, proxied, wish);
                Some(Prepared::Upstream(Box::new(request.ok()?)))
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
            Self::Upstream(request) => request.headers.iter().map(own).collect(),
        }
    }

    /// The same request with other header fields.
    pub(crate) fn with_fields(&self, fields: &[OwnField]) -> Self {
        match self {
            Self::Script(frame) => Self::Script(script::with_headers(frame, fields)),
            Self::Upstream(request) => {
                let mut request = request.clone();
                request.headers = RequestHeaders::default();
                for (name, value) in fields {
                    // They were valid before, and values come from valid ones.
                    let _ = request.headers.add(name, value);
                }
                Self::Upstream(request)
            }
        }
    }

    /// Has it made; `None` for what is not whole within `whole_bytes`.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) async fn make(
        self,
        app: &Rc<App>,
        request_id: u64,
        path: &[u8],
        whole_bytes: usize,
    ) -> Result<Option<(ResponseHead, Vec<u8>)>, Reason> {
        match self {
            Self::Script(frame) => script::make(app, frame, request_id, path, whole_bytes).await,
            Self::Upstream(request) => {
                proxy::make(app, *request, request_id, path, whole_bytes).await
            }
        }
    }
}

impl Begun {
    pub(crate) fn head(&self) -> &ResponseHead {
        match self {
            Self::Script(begun) => &begun.head,
            Self::Upstream(begun) => &begun.head,
        }
    }

    pub(crate) fn head_mut(&mut self) -> &mut ResponseHead {
        match self {
            Self::Script(begun) => &mut begun.head,
            Self::Upstream(begun) => &mut begun.head,
        }
    }

    /// The body, if all of it has come.
    pub(crate) fn whole_body(&self) -> Option<&[u8]> {
        match self {
            Self::Script(begun) => begun.whole_body(),
            Self::Upstream(begun) => begun.whole_body(),
        }
    }

    /// How much of the body has come.
    pub(crate) fn body_bytes(&self) -> usize {
        match self {
            Self::Script(begun) => begun.body_bytes(),
            Self::Upstream(begun) => begun.body_bytes(),
        }
    }

    /// Relays it.
    pub(crate) async fn send(
        self,
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &Rc<App>,
        origin: &Origin,
    ) -> ResponseSummary {
        let sent = match (self, origin) {
            (Self::Script(mut begun), Origin::Script(script)) => match begun.head.sendfile.take() {
                Some(order) => {
                    sendfile::answer(connection, ctx, app, script, begun.head, order).await
                }
                None => begun.send(connection, ctx, app).await,
            },
            (Self::Upstream(begun), _) => Ok(Box::pin(begun.send(connection, ctx, app)).await),
            (Self::Script(_), Origin::Upstream(_)) => Err(Reason::Internal),
        };
        match sent {
            Ok(answered) => answered,
            Err(reason) => refuse(connection, ctx, Some(app), reason).await,
        }
    }
}
