//! [`Stream`]: an HTTP/2 stream, between the client and the connection that serves it.

use super::Common;
use super::request;
use super::response::{Reset, ResponseRelay};
use crate::connection::Connection;
use crate::connections::Entry;
use crate::http1;
use crate::pace::Pace;
use crate::peer::PeerInfo;
use crate::service::Service;
use crate::transport::Transport;
use crate::transport::pipe::Pipe;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::Request;
use outboard_buffer::Held;
use outboard_http1::Method;
use outboard_reactor::spawn;
use std::rc::Rc;

/// See the module.
pub(super) struct Stream {
    common: Rc<Common>,
    head: Request<()>,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    held: Held,
}

impl Stream {
    pub(super) fn new(
        common: Rc<Common>,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        held: Held,
    ) -> Self {
        let (parts, body) = request.into_parts();
        Self { common, head: Request::from_parts(parts, ()), body, respond, held }
    }

    /// Serves the request.
    pub(super) async fn serve<S: Service>(self, service: Rc<S>, entry: Entry) {
        let Self { common, head, body, mut respond, held } = self;
        let (pipe, server_end) = Pipe::pair();
        let transport = Transport::http2(server_end, common.local);
        let mut peer = PeerInfo::new(common.peer.address);
        peer.tls = common.peer.tls.clone();
        let connection =
            Connection::new(common.server.clone(), common.listener.clone(), transport, peer, entry);
        spawn(http1::serve(service, connection));
        let Some(written) = request::to_http1(&head, body.is_end_stream()) else {
            return respond.send_reset(Reason::PROTOCOL_ERROR);
        };
        let pipe = Rc::new(pipe);
        let is_written = request::write(&pipe, &written).await.is_ok();
        drop(written);
        if is_written && !body.is_end_stream() {
            spawn(request::forward_body(
                pipe.clone(),
                body,
                !head.headers().contains_key("content-length"),
            ));
        }
        let mut response = ResponseRelay {
            pipe,
            input: Vec::new(),
            method: Method::of(head.method().as_str().as_bytes()),
            pace: Pace::of_response(&common.server.limits()),
            common: common.clone(),
            held,
        };
        drop(head);
        if let Err(Reset(reason)) = response.relay(&mut respond).await {
            respond.send_reset(reason);
        }
        response.pipe.close();
    }
}
