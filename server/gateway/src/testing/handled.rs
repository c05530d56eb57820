//! [`Handled`]: requests in a test whose handler is the test itself, past routes and access rules.

use crate::gateway::Gateway;
use crate::request::Request;
use outboard_http_server::{
    Request as HttpRequest, ResponseWriter, ServerContext, Service, Written,
};
use outboard_log::{Reason, Wall};
use std::rc::Rc;

/// A gateway whose requests all have the same handler.
pub(super) struct Handled<F> {
    pub(super) gateway: Rc<Gateway>,
    pub(super) handler: F,
}

impl<F> Service for Handled<F>
where
    F: AsyncFn(&mut Request<'_>, &mut ResponseWriter) -> Written + 'static,
{
    fn context(&self) -> &Rc<ServerContext> {
        &self.gateway.server
    }

    async fn respond(
        self: &Rc<Self>,
        http: &mut HttpRequest,
        response: &mut ResponseWriter,
        started: Wall,
    ) -> Written {
        (self.handler)(&mut Request::new(&self.gateway, http, started), response).await
    }

    async fn refuse_head(
        self: &Rc<Self>,
        _: &HttpRequest,
        _: &mut ResponseWriter,
        _: Wall,
        (_, detail): (Reason, &str),
    ) -> Written {
        panic!("the head is invalid: {detail}")
    }
}
