//! How a [`Client`] gets a connection: the place in its pool, the address, the socket, the header of the
//! PROXY protocol and TLS.
//!
//! Invariant: an error of a request that had no connection says so.

use super::{Client, Deadline, Failed};
use crate::account::Account;
use crate::channel::{Channel, Destination};
use crate::endpoint::EndpointAddress;
use crate::error::{Error, Kind};
use crate::request::Request;
use crate::tcp;
use crate::tls::TlsOptions;
use crate::transport::Transport;
use outboard_reactor::{Elapsed, now_ms, with_deadline};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Where a connection leads, and the name in the server's certificate.
#[derive(Clone, Copy)]
enum Place<'a> {
    Host(&'a str, u16),
    Address(SocketAddr, &'a str),
    Unix(&'a Path, &'a str),
}

impl Client {
    pub(super) async fn connect(
        &self,
        request: &Request,
        tls: Option<TlsOptions>,
        deadline: Deadline,
    ) -> Result<Transport, Failed> {
        let url = &request.url;
        let until_ms = deadline.at_ms.min(now_ms() + request.connect_timeout_ms);
        let account = request.account.as_ref();
        let server = request.server();
        let pool = self.connections.pool(server);
        let place = with_deadline(until_ms, pool.socket()).await;
        let place = place.map_err(|Elapsed| late(server))?;
        let to = match request.endpoint.as_deref().map(|endpoint| &endpoint.address) {
            None => Place::Host(url.host(), url.port()),
            Some(EndpointAddress::Tcp(address)) => Place::Address(*address, url.host()),
            Some(EndpointAddress::Unix(path)) => Place::Unix(path, url.host()),
        };
        let reached = self.reach(to, server, &request.preface, tls, account, until_ms);
        let mut transport = reached.await.map_err(Failed::unsent)?;
        transport.count_for_origin(Some(place));
        Ok(transport)
    }

    /// Connects for another protocol than HTTP, until `until_ms` (monotonic).
    ///
    /// # Errors
    /// No connection was established.
    pub async fn dial(&self, to: &Destination, until_ms: u64) -> Result<Channel, Error> {
        let tls = to.tls_verified.map(|verify| TlsOptions { verify, http2: false });
        let name = format!("{}:{}", to.host, to.port);
        let place = Place::Host(&to.host, to.port);
        match self.reach(place, &name, &[], tls, None, until_ms).await {
            Ok(transport) => Ok(Channel::new(transport, Vec::new(), None)),
            Err(Failed::Connection { error, .. } | Failed::Finally(error)) => Err(error),
        }
    }

    /// Resolves, connects and starts TLS; `name` is for messages.
    async fn reach(
        &self,
        to: Place<'_>,
        name: &str,
        preface: &[u8],
        tls: Option<TlsOptions>,
        account: Option<&Arc<Account>>,
        until_ms: u64,
    ) -> Result<Transport, Failed> {
        let (addresses, port, host) = match to {
            Place::Host(host, port) => {
                let found = with_deadline(until_ms, self.resolver.resolve(host, account)).await;
                (found.map_err(|Elapsed| late(name))?.map_err(Failed::Finally)?, port, host)
            }
            Place::Address(address, host) => (Rc::from([address.ip()]), address.port(), host),
            Place::Unix(_, host) => (Rc::from([]), 0, host),
        };
        let socket = with_deadline(until_ms, self.connections.socket(name)).await;
        let socket = socket.map_err(|Elapsed| late(name))?.map_err(Failed::Finally)?;
        let connected = match to {
            Place::Unix(path, _) => tcp::connect_unix(path).await,
            _ => tcp::connect(&addresses, port, until_ms).await,
        };
        let failed = |error: io::Error| {
            if error.kind() == io::ErrorKind::TimedOut {
                return late(name);
            }
            let message = format!("no connection to {name}: {error}");
            let error = Error::new(Kind::Connect, message).because(error);
            Failed::Connection { error, was_pooled: false }
        };
        let stream = connected.map_err(failed)?;
        if !preface.is_empty() {
            let mut header = [IoSlice::new(preface)];
            let written = with_deadline(until_ms, stream.write_all(&mut header)).await;
            written.map_err(|Elapsed| late(name))?.map_err(failed)?;
        }
        self.connections.count(|counters| counters.connections += 1);
        match tls {
            None => Ok(Transport::plain(stream, socket)),
            Some(tls) => {
                let session = self.sessions.connect(stream, host, tls);
                let tls = with_deadline(until_ms, session).await;
                let tls = tls.map_err(|Elapsed| late(name))?.map_err(Failed::Finally)?;
                Ok(Transport::tls(tls, socket))
            }
        }
    }
}

impl Failed {
    /// The request had no connection yet.
    fn unsent(self) -> Self {
        match self {
            Self::Connection { error, was_pooled } => {
                Self::Connection { error: error.unsent(), was_pooled }
            }
            Self::Finally(error) => Self::Finally(error.unsent()),
        }
    }
}

fn late(name: &str) -> Failed {
    let message = format!("no connection to {name} in time");
    Failed::Finally(Error::new(Kind::Timeout, message))
}
