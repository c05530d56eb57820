//! An HTTP client on the gateway's own event loop, so that PHP does not wait for other servers itself.
//!
//! Called by the gateway for `fetch()`, `compose`, `prefetch` and proxied routes. It speaks HTTP/1.1 over
//! plain sockets and TLS and HTTP/2 over TLS, pools connections, follows redirects, decodes bodies, and
//! bounds time, size and requests per origin. State is `Rc` and belongs to one loop of `outboard_reactor`.
//!
//! | file | owns |
//! |---|---|
//! | `client` | [`Client`]: redirects, retries |
//! | `connections` | the connections of a client to all origins |
//! | `request`, `response` | [`Request`], [`Response`] |
//! | `response_facts` | the head of a response over either protocol |
//! | `upload` | [`Upload`]: a request with a streamed body |
//! | `connection` | one HTTP/1.1 exchange, read strictly |
//! | `http2` | exchanges that share a connection |
//! | `channel` | [`Channel`]: a connection with another protocol |
//! | `origin_pool` | the requests and idle connections of one origin |
//! | `dns`, `tcp`, `tls`, `transport` | name resolution, connection, TLS |
//! | `decode` | content codings |
//! | `read_turns` | [`ReadTurns`]: whose body is read next |
//! | `account`, `sockets` | the limits of one caller, and of all together |
//! | `interim` | [`Interims`]: interim responses |
//! | `scoped_task` | [`ScopedTask`]: a task that ends with its handle |
//! | `url`, `error`, `counters` | [`Url`], [`Error`], [`Counters`] |
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
mod connection;
mod connections;
mod counters;
mod decode;
mod dns;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod http2;
mod interim;
mod origin_pool;
mod read_turns;
mod request;
mod response;
mod response_facts;
mod scoped_task;
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
pub use connections::Settings;
pub use counters::{Counters, Gauges};
pub use error::{Error, Kind};
pub use interim::{Interim, Interims};
pub use read_turns::ReadTurns;
pub use request::{BodyLength, Request, RequestHeaders};
pub use response::Response;
pub use scoped_task::ScopedTask;
pub use upload::Upload;
pub use url::Url;
