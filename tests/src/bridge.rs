//! A way to a server by HTTP/2 or HTTP/3 for tests that write HTTP/1.1.
//!
//! Each connection of a test becomes one of the server, and each of its requests a stream, by client
//! libraries that nobody here wrote. Used where a test starts a server. Invariants: a body passes piece
//! by piece in both directions, at the pace of its reader; a client that leaves cancels its stream; a
//! stream or connection that the server ends early closes the connection of the test.

mod client;
mod stream;

use crate::{Certificate, Protocol};
use client::{BodyReader, Head, Reader, Writer};
use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::thread::JoinHandle;
use stream::{Incoming, Outgoing, Peer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};

/// A bridge to one listener; it ends on drop, with its connections.
#[derive(Debug)]
pub(crate) struct Bridge {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bridge {
    /// To a listener with this URL by the protocol of the run; `None` if tests speak with it themselves.
    pub(crate) fn of_run(url: &str) -> Option<Bridge> {
        let protocol = Protocol::of_run();
        let scheme = match protocol {
            Protocol::Http1 => return None,
            Protocol::Http2 => "http://",
            Protocol::Http3 => "https://",
        };
        let address = url.strip_prefix(scheme)?.trim_end_matches('/').parse().ok()?;
        Some(Bridge::to(address, protocol))
    }

    /// Begins to carry connections to a server.
    fn to(server: SocketAddr, protocol: Protocol) -> Bridge {
        let listener =
            std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("a socket has the option");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("descriptors are left");
            LocalSet::new().block_on(&runtime, async move {
                let listener = TcpListener::from_std(listener).expect("there is a runtime");
                tokio::select! {
                    _ = stopped => {}
                    _ = accept(listener, server, protocol) => {}
                }
            });
        });
        Bridge { address, stop: Some(stop), thread: Some(thread) }
    }

    /// Where tests connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A configuration whose first listener, if it is a plain one, speaks the protocol of the run.
pub(crate) fn listening(text: &str, folder: &Path) -> String {
    const PLAIN: &str = "listen = \"127.0.0.1:0\"\n";
    if Protocol::of_run() != Protocol::Http3 || !text.contains(PLAIN) {
        return text.to_owned();
    }
    let Certificate { chain, key } = Certificate::make(folder, "bridge", "IP:127.0.0.1");
    let listener = format!(
        "listen = [{{ address = \"127.0.0.1:0\", http3 = true, \
         tls = [{{ certificate = {chain:?}, key = {key:?} }}] }}]\n"
    );
    text.replacen(PLAIN, &listener, 1)
}

async fn accept(listener: TcpListener, server: SocketAddr, protocol: Protocol) {
    while let Ok((client, _)) = listener.accept().await {
        spawn_local(async move {
            // A failure closes the connection, which the test notices.
            let _ = serve(client, server, protocol).await;
        });
    }
}

async fn serve(client: TcpStream, server: SocketAddr, protocol: Protocol) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut peer = Peer::connect(server, protocol).await?;
    let (reader, writer) = client.into_split();
    let (mut reader, mut writer) = (Reader::new(reader), Writer::new(writer));
    loop {
        let head = tokio::select! {
            head = reader.head() => head?,
            () = peer.closed() => return Ok(()),
        };
        let Some(head) = head else { return Ok(()) };
        let closes = head.closes;
        let is_whole = exchange(&mut peer, head, &mut reader, &mut writer).await?;
        if closes || !is_whole {
            return Ok(());
        }
    }
}

/// Carries one request and its response; whether the request was read to its end.
async fn exchange(
    peer: &mut Peer,
    head: Head,
    reader: &mut Reader,
    writer: &mut Writer,
) -> io::Result<bool> {
    let Head { request, body, closes } = head;
    let is_head = request.method() == http::Method::HEAD;
    let (mut outgoing, mut incoming) = peer.send(request, body == BodyReader::None).await?;
    let is_whole = Cell::new(false);
    let ended = {
        let mut upload = pin!(upload(reader, body, &mut outgoing, &is_whole));
        let mut download = pin!(download(&mut incoming, writer, is_head, closes));
        tokio::select! {
            ended = &mut download => ended,
            gone = &mut upload => Err(gone),
        }
    };
    if ended.is_err() || !is_whole.get() {
        outgoing.cancel();
    }
    if ended.is_err() {
        incoming.cancel();
    }
    ended.map(|()| is_whole.get())
}

/// Carries the body of a request, and then waits for the client to leave; returns when it has.
async fn upload(
    reader: &mut Reader,
    mut body: BodyReader,
    outgoing: &mut Outgoing,
    is_whole: &Cell<bool>,
) -> io::Error {
    if body != BodyReader::None {
        loop {
            let sent = match reader.piece(&mut body).await {
                Err(gone) => return gone,
                Ok(Some(piece)) => outgoing.data(piece).await,
                Ok(None) => match outgoing.finish().await {
                    Ok(()) => break,
                    Err(error) => Err(error),
                },
            };
            if sent.is_err() {
                // The server does not want the rest, but may have a response to it.
                return reader.gone().await;
            }
        }
    }
    is_whole.set(true);
    reader.gone().await
}

async fn download(
    incoming: &mut Incoming,
    writer: &mut Writer,
    is_head: bool,
    closes: bool,
) -> io::Result<()> {
    let mut head = incoming.head().await?;
    while head.status().is_informational() {
        writer.interim(&head).await?;
        head = incoming.head().await?;
    }
    let framing = writer.head(&head, is_head, closes).await?;
    while let Some(piece) = incoming.data().await? {
        writer.piece(framing, &piece).await?;
    }
    let trailers = incoming.trailers().await?;
    writer.end(framing, trailers.as_ref()).await
}
