//! The gateway: sockets, HTTP/1.1, static files, routing, admission, and the PHP workers' other
//! end. No PHP is in it.
//!
//! One I/O thread runs everything here on the loop of `outboard_reactor`; state is shared as `Rc`
//! and never locked. The way of a request:
//!
//! ```text
//! listener ─▶ connection ─▶ turn ─▶ route ─▶ files ───────────────▶ answer ─▶ client
//!                                      ├───▶ script ─▶ pool ═ring═ worker
//!                                      └───▶ compose: several of these, and upstreams
//! ```
//!
//! The command line calls [`server::serve`]; everything else is wired from there.

#![forbid(unsafe_code)]

mod admin;
mod answer;
mod app;
mod body;
mod buffers;
mod client;
mod compose;
mod compression;
mod connection;
mod connections;
mod counters;
mod development;
mod entities;
mod exchange;
mod fetch;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod generation;
mod header_block;
mod http2;
mod identity;
pub mod life;
mod listener;
mod memory;
mod metrics;
mod opcache;
mod origin;
mod pace;
mod page_cache;
mod php_head;
mod php_settings;
mod pool;
mod prefetch;
mod proxy;
mod receive;
mod route;
mod script;
pub mod server;
mod spool;
mod status;
mod tasks;
mod turn;
pub mod upgrade;
pub mod users;
mod wire;
