//! The end-to-end harness: real servers, real applications, and a client that sees raw bytes.
//!
//! A test holds Outboard against a *reference*: nginx and php-fpm on the same document root. Both
//! are [`Site`]s; a [`Pair`] sends each the same [`Request`] and says where the answers differ.
//! Every server listens on an ephemeral port, keeps its files in a [`Scratch`] folder and ends with
//! the test that started it. Nothing here waits for a time to pass: readiness is a line that the
//! server writes, and a state that it does not announce is awaited by [`eventually`]. No wait is
//! without a bound.
//!
//! `OUTBOARD_BIN` names the binary under test (default: the one that cargo built beside the test).
//! `OUTBOARD_E2E_PROTOCOL=http2` or `http3` puts a bridge between the tests and the server, which shows
//! that what they assert holds in every version of HTTP.
//! `OUTBOARD_E2E_SUBJECT=php-fpm` puts a second reference in Outboard's place, which shows that the
//! harness itself finds no differences where there are none.

#![forbid(unsafe_code)]

mod again;
mod authority;
mod backend;
mod bridge;
mod browser;
mod cable;
mod certificate;
mod child;
mod client;
mod collector;
mod configured;
mod connection;
mod crawl;
mod debugger;
mod docroot;
mod eventually;
mod example;
mod fifo;
mod fpm_stack;
mod gate;
mod held;
mod html;
mod lossy_network;
mod mariadb;
mod mediawiki;
mod memcached;
mod multipart;
mod named;
mod names;
mod openssl;
pub mod page;
mod pair;
mod postgres;
mod process;
mod program;
mod protocol;
mod redis;
mod redis_cluster;
mod repeating;
mod replica;
mod request;
mod response;
mod scratch;
mod scrub;
mod server;
mod site;
mod tcp;
mod threads;
mod web;
mod wire;
mod wordpress;

pub use authority::Authority;
pub use backend::Backend;
pub use bridge::Bridge;
pub use browser::Browser;
pub use cable::Cable;
pub use certificate::Certificate;
pub use child::{Child, Launch};
pub use client::Client;
pub use collector::Collector;
pub use configured::Configured;
pub use connection::Connection;
pub use crawl::{Crawl, Visited};
pub use debugger::{DebugSession, Debugger, attribute, base64};
pub use docroot::Docroot;
pub use eventually::{Look, another_second, eventually, eventually_within};
pub use example::Example;
pub use fifo::Fifo;
pub use fpm_stack::FpmStack;
pub use gate::Gate;
pub use held::Held;
pub use html::Form;
pub use lossy_network::LossyNetwork;
pub use mariadb::MariaDb;
pub use mediawiki::MediaWiki;
pub use memcached::Memcached;
pub use multipart::Multipart;
pub use named::{Ended, NamedServers};
pub use names::Names;
pub use openssl::{openssl, s_client};
pub use pair::{Pair, Visit};
pub use postgres::Postgres;
pub use process::Process;
pub use program::Program;
pub use protocol::Protocol;
pub use redis::Redis;
pub use redis_cluster::RedisCluster;
pub use repeating::repeating;
pub use replica::{Mode, Replica};
pub use request::Request;
pub use response::{Framing, Response};
pub use scratch::Scratch;
pub use scrub::Scrub;
pub use server::Server;
pub use site::{App, Site};
pub use tcp::{accept, connect, connect_from, read_to_any_end};
pub use threads::{THREAD_COUNTS, VISITORS};
pub use web::Web;
pub use wire::Wire;
pub use wordpress::WordPress;
