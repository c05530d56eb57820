//! An HTTP client on the gateway's own event loop, so that PHP does not wait for other servers itself.
//!
//! Called by the gateway for `fetch()`, `compose`, `prefetch` and proxied routes. It speaks HTTP/1.1 over
//! plain sockets and TLS and HTTP/2 over TLS, pools connections, follows redirects, decodes bodies, and
//! bounds time, size and requests per origin. State is `Rc` and belongs to one loop of `outboard_reactor`;
//! clients of several loops share limits in a [`ClientGroup`].
//!
//! | file | owns |
//! |---|---|
//! | `client` | [`Client`]: redirects, retries |
//! | `client_group` | [`ClientGroup`]: what the clients of several loops share |
//! | `connections` | the connections of a client to all origins |
//! | `request`, `response` | [`Request`], [`Response`] |
//! | `response_facts` | the head of a response over either protocol |
//! | `upload` | [`Upload`]: a request with a streamed body |
//! | `connection` | one HTTP/1.1 exchange, read strictly |
//! | `http2` | exchanges that share a connection |
//! | `channel` | [`Channel`]: a connection with another protocol |
//! | `origin_pool` | the requests and idle connections of one origin in one loop |
//! | `origin_limits` | the limits of one origin for all loops |
//! | `permits` | permits, and the queue for them |
//! | `dns`, `lookups`, `tcp`, `tls`, `transport` | name resolution and its limits, connection, TLS |
//! | `decode` | content codings |
//! | `read_turns` | [`ReadTurns`]: whose body is read next |
//! | `account`, `sockets` | the limits of one caller, and of connections |
//! | `endpoint` | [`Endpoint`]: a server that a request is sent to, whatever its URL is |
//! | `doorbell` | how a loop is asked for an idle connection's place |
//! | `interim` | [`Interims`]: interim responses |
//! | `scoped_task` | [`ScopedTask`]: a task that ends with its handle |
//! | `settings`, `url`, `error`, `counters` | [`Settings`], [`Url`], [`Error`], [`Counters`] |
//!
//! # Examples
//!
//! ```
//! use outboard_upstream::{Client, Error, Request, Settings, Url};
//! use std::io::{Read, Write};
//!
//! let server = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let url = format!("http://{}/", server.local_addr()?);
//! std::thread::spawn(move || {
//!     let (mut peer, _) = server.accept().expect("the client connects");
//!     peer.read(&mut [0; 4096]).expect("the request arrives");
//!     peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").expect("the client reads");
//! });
//! let body = outboard_reactor::run(async move {
//!     let client = Client::new(Settings::default());
//!     let mut response = client.send(Request::get(Url::parse(url.as_bytes())?)).await?;
//!     let mut body = Vec::new();
//!     while response.read(&mut body).await? {}
//!     Ok::<_, Error>(body)
//! })??;
//! assert_eq!(body, b"hi");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod account;
mod channel;
mod client;
mod client_group;
mod connection;
mod connections;
mod counters;
mod decode;
mod dns;
mod doorbell;
mod endpoint;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod http2;
mod interim;
mod lookups;
mod origin_limits;
mod origin_pool;
mod permits;
mod read_turns;
mod request;
mod response;
mod response_facts;
mod scoped_task;
mod settings;
mod sockets;
mod tcp;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod transport;
mod upload;
mod url;

pub use account::Account;
pub use channel::{Channel, Destination};
pub use client::Client;
pub use client_group::ClientGroup;
pub use counters::{Counters, Gauges};
pub use endpoint::{Endpoint, EndpointAddress};
pub use error::{Error, Kind};
pub use interim::{Interim, Interims};
pub use read_turns::ReadTurns;
pub use request::{BodyLength, Request, RequestHeaders};
pub use response::Response;
pub use scoped_task::ScopedTask;
pub use settings::Settings;
pub use upload::Upload;
pub use url::Url;
