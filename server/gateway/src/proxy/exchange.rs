//! [`Exchange`]: a request to an upstream, until the head of its response arrives.
//!
//! Used by [`super::start`]. Invariants: it ends when the client goes away; interim responses are
//! relayed before the response.

use super::failure::Failure;
use super::outgoing::{self, Outgoing, Sent};
use crate::app::App;
use crate::mirror::Mirror;
use crate::origin_response;
use crate::request::Request;
use crate::response_head::ResponseHead;
use outboard_balancer::Attempt;
use outboard_buffer::RequestBody;
use outboard_http_server::ResponseWriter;
use outboard_http_server::body_reader::Pieces;
use outboard_log::{Reason, Wall};
use outboard_reactor::{deadline_ms, set_deadline, yield_now};
use outboard_upstream::{BodyLength, Interims, Response, Upload};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// Bytes of a spooled body that are read at once.
const SPOOLED_PIECE_BYTES: usize = 64 << 10;

/// See the module.
pub(super) struct Exchange<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) app: &'a App,
    pub(super) interims: &'a Interims,
    pub(super) mirror: Option<&'a Mirror>,
}

impl Exchange<'_> {
    /// Sends a request whose body it contains.
    pub(super) async fn send(
        &self,
        response: &mut ResponseWriter,
        outgoing: Outgoing,
    ) -> Result<Result<Sent<Response>, Failure>, Reason> {
        if let Some(mirror) = self.mirror {
            mirror.copy(&self.app.upstream, &outgoing.request);
        }
        self.wait_response(response, outgoing.send(self.app)).await
    }

    /// Sends a request with a body that was received before.
    pub(super) async fn send_received(
        &self,
        response: &mut ResponseWriter,
        mut outgoing: Outgoing,
        mut body: RequestBody,
    ) -> Result<Result<Sent<Response>, Failure>, Reason> {
        if body.memory().len() as u64 == body.length() {
            outgoing.request.body = body.memory().to_vec();
            return self.send(response, outgoing).await;
        }
        let length = BodyLength::Known(body.length());
        let started = outgoing.upload(self.app, length);
        let Sent { result: mut upload, attempt } =
            match self.request.client.unless_gone(started).await? {
                Ok(sent) => sent,
                Err(failure) => return Ok(Err(failure)),
            };
        let mut piece = Vec::new();
        while !body.is_spent() {
            let taken = body.next(SPOOLED_PIECE_BYTES, |bytes| {
                piece.clear();
                piece.extend_from_slice(bytes);
                Ok::<_, Reason>(true)
            });
            taken.map_err(|_| Reason::SpoolFailed)??;
            self.request.client.unless_gone(upload.write(&piece)).await?;
            yield_now().await;
        }
        self.finish(response, upload, attempt).await
    }

    /// Sends a request with a body that is relayed while it arrives.
    pub(super) async fn stream(
        &self,
        response: &mut ResponseWriter,
        outgoing: Outgoing,
        mut pieces: Pieces,
    ) -> Result<Result<Sent<Response>, Failure>, Reason> {
        let length = pieces.length().map_or(BodyLength::Chunked, BodyLength::Known);
        let started = outgoing.upload(self.app, length);
        let Sent { result: mut upload, attempt } =
            match self.request.client.unless_gone(started).await? {
                Ok(sent) => sent,
                Err(failure) => return Ok(Err(failure)),
            };
        while let Some(piece) = pieces.next(self.request, &self.app.config.limits).await? {
            upload.write(piece).await;
        }
        self.finish(response, upload, attempt).await
    }

    /// The body is complete.
    async fn finish(
        &self,
        response: &mut ResponseWriter,
        upload: Upload,
        attempt: Option<Attempt>,
    ) -> Result<Result<Sent<Response>, Failure>, Reason> {
        let finished = Wall::now();
        let response = self.wait_response(response, upload.finish()).await?;
        Ok(outgoing::uploaded(self.app, response, attempt, finished))
    }

    /// Waits for the response, unless the client goes away, and relays interim responses (RFC 9110
    /// 15.2).
    async fn wait_response<T>(
        &self,
        response: &mut ResponseWriter,
        upstream: impl Future<Output = T>,
    ) -> Result<T, Reason> {
        let mut upstream = pin!(upstream);
        let client = &self.request.client;
        loop {
            let outcome = poll_fn(|context| match upstream.as_mut().poll(context) {
                Poll::Ready(done) => Poll::Ready(Ok(Some(done))),
                Poll::Pending if !self.interims.is_empty() => Poll::Ready(Ok(None)),
                Poll::Pending => client.poll_gone().map(|()| Err(Reason::ClientGone)),
            });
            let outcome = outcome.await?;
            // The deadline of the upstream, which other waits of this task would clear.
            let until_ms = deadline_ms();
            while let Some(interim) = self.interims.take() {
                // An invalid interim response is skipped.
                if let Ok(head) = ResponseHead::of_upstream(interim.status, &interim.headers) {
                    origin_response::write_interim(response, &head).await?;
                }
            }
            set_deadline(until_ms);
            if let Some(done) = outcome {
                return Ok(done);
            }
        }
    }
}
