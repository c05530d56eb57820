//! Connections over an in-memory pipe, for unit tests.

use crate::client::Client;
use crate::connection::Connection;
use crate::connections::{Entry, Kind};
use crate::listener_context::{ListenerContext, Role};
use crate::peer::PeerInfo;
use crate::request::Request;
use crate::response_facts::Written;
use crate::response_writer::ResponseWriter;
use crate::server_context::{ServerContext, ServerShared};
use crate::service::Service;
use crate::transport::Transport;
use crate::transport::pipe::Pipe;
use crate::upgrade::{UpgradeHandler, Upgraded};
use outboard_buffer::{Memory, TempDir};
use outboard_config::{Config, Limits};
use outboard_log::{ErrorLog, Level, Opener, Reason, Sink, Target, Wall};
use outboard_reactor::Peer;
use std::future::poll_fn;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// The default limits of a configuration.
pub(crate) fn limits() -> Limits {
    let text = "[app.site]\nroot = \"/tmp\"\n";
    Config::parse(text, Path::new("test.toml")).expect("a valid configuration").limits
}

/// A context without a log.
pub(crate) fn context(limits: Limits) -> Rc<ServerContext> {
    context_of(&ServerShared::new(1, TempDir::new("/tmp".into(), 1 << 30)), limits)
}

/// The context of another shard.
pub(crate) fn context_of(shared: &Arc<ServerShared>, limits: Limits) -> Rc<ServerContext> {
    let sink = Sink::open(Target::Off, Opener::default()).expect("no file is opened");
    let log = Rc::new(ErrorLog::new(Rc::new(sink), Level::Error));
    ServerContext::new(limits, log, Memory::new(64 << 20), shared)
}

/// A connection of a context, and the client's end.
pub(crate) fn connect(context: &Rc<ServerContext>) -> (Connection, Pipe) {
    let (client, server) = Pipe::pair();
    client.widen(1 << 20);
    let transport = Transport::pipe(server);
    let listener = Arc::new(ListenerContext::plain(Role::Apps));
    let entry: Entry = context
        .connections
        .open(Kind::Connection, None, &context.limits())
        .expect("nothing else is open");
    let peer = PeerInfo::new(Peer::Unix);
    let server = Client::new(context.clone(), listener, transport, peer, entry);
    (Connection::new(server), client)
}

/// A connection with default limits, and the client's end.
pub(crate) fn connection_pair() -> (Connection, Pipe) {
    connect(&context(limits()))
}

/// Everything that the server has written so far.
pub(crate) fn read_all(client: &Pipe) -> String {
    let mut bytes = Vec::new();
    client.try_read(&mut bytes);
    client.release();
    String::from_utf8(bytes).expect("responses of tests are text")
}

/// Sends back what comes, until the client has ended its side.
async fn echo_bytes(mut client: Upgraded) {
    loop {
        let mut bytes = Vec::new();
        match poll_fn(|_| client.poll_read(&mut bytes)).await {
            Ok(0) | Err(_) => return client.end(),
            Ok(_) => {}
        }
        while !bytes.is_empty() {
            let Ok(count) = poll_fn(|_| client.poll_write(&bytes)).await else { return };
            bytes.drain(..count);
        }
    }
}

/// A service that responds with the request's path, or as the path demands.
pub(crate) struct Echo {
    pub(crate) context: Rc<ServerContext>,
}

impl Service for Echo {
    fn context(&self) -> &Rc<ServerContext> {
        &self.context
    }

    async fn respond(
        self: &Rc<Self>,
        request: &mut Request,
        response: &mut ResponseWriter,
        _: Wall,
    ) -> Written {
        use crate::body_reader;
        use crate::header_block::HeaderBlock;
        let path = request.encoded_path().to_vec();
        if request.upgrade().is_some() {
            let handler: UpgradeHandler = Box::new(|client| Box::pin(echo_bytes(client)));
            return response.upgrade(&HeaderBlock::default(), handler).await;
        }
        let mut body = path.clone();
        if path == b"/body" {
            let limits = request.client.context.limits().clone();
            match body_reader::in_memory(request, response, &limits).await {
                Ok((bytes, _)) => body = bytes,
                Err(reason) => body = reason.code().as_bytes().to_vec(),
            }
        }
        if path == b"/broken" {
            return Written::Broken;
        }
        response.respond(200, &HeaderBlock::default(), &body).await
    }

    async fn refuse_head(
        self: &Rc<Self>,
        _: &Request,
        response: &mut ResponseWriter,
        _: Wall,
        (reason, detail): (Reason, &str),
    ) -> Written {
        use crate::header_block::HeaderBlock;
        response.respond(reason.status(), &HeaderBlock::default(), detail.as_bytes()).await
    }
}
