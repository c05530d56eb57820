//! [`UpstreamCall`]: a request to another server, for the histograms and the trace.
//!
//! Held by what sends the request, until its response has ended. Invariant: each is measured once, also
//! if it fails or is given up.

use crate::app::App;
use crate::latencies::{Kind, Phase, Series};
use crate::request::Request;
use crate::upstreams;
use outboard_balancer::Attempt;
use outboard_config::SameSite;
use outboard_log::Wall;
use outboard_operations::ClientSpan;
use outboard_upstream as upstream;
use outboard_upstream::Error;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct UpstreamCall {
    app: Rc<App>,
    kind: Kind,
    started: Wall,
    /// 0: it has failed, or there is no response yet.
    status: Cell<u16>,
    span: Option<ClientSpan>,
    /// The server of an upstream that has responded.
    attempt: OnceCell<Attempt>,
}

impl UpstreamCall {
    /// The request is about to be sent; the other server gets the trace context.
    pub(crate) fn begin(
        request: &Request<'_>,
        app: &Rc<App>,
        sent: &mut upstream::Request,
    ) -> Self {
        let span = request.trace.as_ref().map(|outer| ClientSpan::begin(outer, sent));
        let (app, started, status) = (app.clone(), Wall::now(), Cell::new(0));
        let attempt = OnceCell::new();
        Self { app, kind: request.kind.get(), started, status, span, attempt }
    }

    /// The response has begun.
    pub(crate) fn responded(&self, status: u16) {
        self.status.set(status);
        if let Some(span) = &self.span {
            span.responded(status);
        }
    }

    /// It failed.
    pub(crate) fn failed(&self, error: &Error) {
        self.status.set(0);
        if let Some(span) = &self.span {
            span.failed(error);
        }
    }

    /// The server of the response, which counts until its end.
    pub(crate) fn served_by(&self, request: &Request<'_>, attempt: Attempt) {
        let _ = request.server.set(attempt.server().clone());
        let _ = self.attempt.set(attempt);
    }

    /// The server has failed within the body of its response.
    pub(crate) fn broke_off(&self, error: &Error) {
        if let Some(attempt) = self.attempt.get() {
            upstreams::failed(&self.app.logs.error, attempt);
        }
        self.failed(error);
    }

    /// The cookie that binds the client to the server, if it needs one.
    pub(crate) fn cookie(&self, is_https: bool) -> Option<String> {
        let attempt = self.attempt.get()?;
        let sticky = attempt.group().rules().sticky.as_ref()?;
        let value = String::from_utf8_lossy(attempt.new_cookie()?);
        let mut cookie = format!("{}={value}; Path=/; HttpOnly", sticky.cookie);
        cookie += match sticky.same_site {
            SameSite::Lax => "; SameSite=Lax",
            SameSite::Strict => "; SameSite=Strict",
            SameSite::None => "; SameSite=None",
        };
        if let Some(max_age_ms) = sticky.max_age_ms {
            cookie += &format!("; Max-Age={}", max_age_ms / 1_000);
        }
        Some(if is_https { cookie + "; Secure" } else { cookie })
    }

    /// How long it has taken so far.
    pub(crate) fn took_us(&self) -> u64 {
        Wall::now().unix_us.saturating_sub(self.started.unix_us)
    }
}

impl Drop for UpstreamCall {
    fn drop(&mut self) {
        let series = Series::new(Phase::Upstream, self.kind, self.status.get());
        self.app.latencies.record(series, self.took_us());
    }
}
