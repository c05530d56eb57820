//! A way to a server by HTTP/2 or HTTP/3 for tests that write HTTP/1.1.
//!
//! Each connection of a test becomes one of the server, and each of its requests a stream, by client
//! libraries that nobody here wrote. Used where a test starts a server. Invariants: a body passes piece
//! by piece in both directions, at the pace of its reader; a client that leaves cancels its stream; a
//! stream or connection that the server ends early closes the connection of the test. What has no
//! counterpart in those versions, such as a malformed head, closes it as well.

mod client;
mod head_text;
mod stream;
mod tunnel;

use crate::{Certificate, Protocol};
use client::{BodyReader, Head, Reader, ResponseTo, Writer};
use regex::Regex;
use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::Duration;
use stream::{Incoming, Outgoing, Peer, Route};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

/// How long a client that was sent everything may take to close.
const LINGER: Duration = Duration::from_secs(5);

/// A bridge to one listener; it ends on drop, with its connections.
#[derive(Debug)]
pub struct Bridge {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bridge {
    /// To a listener with this URL, of a server with this configuration, by the protocol of the run; `None`
    /// if tests speak with it themselves.
    pub(crate) fn of_run(url: &str, configuration: &str) -> Option<Bridge> {
        let protocol = Protocol::of_run();
        let has_http3 = configuration.contains(&format!("/{CERTIFICATE}.pem"));
        let scheme = match protocol {
            Protocol::Http2 => "http://",
            Protocol::Http3 if has_http3 => "https://",
            Protocol::Http1 | Protocol::Http3 => return None,
        };
        let address = url.strip_prefix(scheme)?.trim_end_matches('/').parse().ok()?;
        Some(Bridge::to(address, protocol))
    }

    /// Begins to carry connections to a server.
    pub fn to(server: SocketAddr, protocol: Protocol) -> Bridge {
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
    pub fn address(&self) -> SocketAddr {
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

/// A configuration whose listeners, if they are plain ones, speak the protocol of the run.
pub(crate) fn listening(text: &str, folder: &Path) -> String {
    if Protocol::of_run() != Protocol::Http3 || text.contains("tls = ") {
        return text.to_owned();
    }
    let names: Vec<String> = (1..=5).map(|last| format!("IP:127.0.0.{last}")).collect();
    let Certificate { chain, key } = Certificate::make(folder, CERTIFICATE, &names.join(","));
    let tls = format!("tls = [{{ certificate = {chain:?}, key = {key:?} }}]");
    let mut table = "";
    let lines = text.lines().map(|line| {
        let line = line.trim();
        if line.starts_with('[') {
            table = line;
        }
        let Some(found) = PLAIN.captures(line) else { return format!("{line}\n") };
        match (&found[1], table) {
            ("listen", "") => {
                format!("listen = [{{ address = {}, http3 = true, {tls} }}]\n", &found[2])
            }
            ("address", "[[listen]]") => format!("{line}\nhttp3 = true\n{tls}\n"),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// The certificate of listeners with HTTP/3.
const CERTIFICATE: &str = "bridge";

/// The line of a TCP listener's address.
static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"^(listen|address) = ("127\.0\.0\.\d+:\d+")$"#).expect("it is valid")
});

async fn accept(listener: TcpListener, server: SocketAddr, protocol: Protocol) {
    while let Ok((client, from)) = listener.accept().await {
        spawn_local(async move {
            // A failure closes the connection, which the test notices.
            let _ = serve(client, Route { from: from.ip(), to: server, protocol }).await;
        });
    }
}

async fn serve(client: TcpStream, route: Route) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut peer = Peer::connect(route).await?;
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
            // A socket with unread bytes is reset, and the client would lose the response.
            writer.finish().await?;
            let _ = timeout(LINGER, reader.discard()).await;
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
        let framing = ResponseTo { is_head, closes, is_tunnel: body == BodyReader::Tunnel };
        let mut download = pin!(download(&mut incoming, writer, framing));
        tokio::select! {
            // What arrived before a reset is passed on first.
            biased;
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
    let is_tunnel = body == BodyReader::Tunnel;
    if body != BodyReader::None {
        loop {
            let sent = match reader.piece(&mut body).await {
                Err(gone) => return gone,
                Ok(Some(piece)) => outgoing.data(piece).await,
                Ok(None) => match outgoing.finish(reader.trailers.take()).await {
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
    if is_tunnel {
        return outgoing.broken().await;
    }
    tokio::select! {
        gone = reader.gone() => gone,
        broken = outgoing.broken() => broken,
    }
}

async fn download(
    incoming: &mut Incoming,
    writer: &mut Writer,
    request: ResponseTo,
) -> io::Result<()> {
    let mut head = incoming.head().await?;
    while head.status().is_informational() {
        writer.interim(&head).await?;
        head = incoming.head().await?;
    }
    let framing = writer.head(&head, request).await?;
    while let Some(piece) = incoming.data().await? {
        writer.piece(framing, &piece).await?;
    }
    let trailers = incoming.trailers().await?;
    writer.end(framing, trailers.as_ref()).await
}
