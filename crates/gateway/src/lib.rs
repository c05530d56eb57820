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
mod admin_admission;
mod admin_reply;
mod app;
mod background_drop;
mod cache_requirements;
mod compose;
mod compression;
mod control;
mod development;
mod dispatch;
mod entities;
mod entity_api;
mod error_page;
mod fetch;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod generation;
pub mod life;
mod listeners;
mod live_reload;
mod logs;
mod metrics;
mod opcache;
mod options;
mod origin;
mod origin_response;
mod page_cache;
mod prefetch;
mod privileges;
mod proxy;
mod read_turns;
mod request;
mod response_head;
mod route;
mod script;
pub mod server;
mod server_error;
mod status;
mod upstream_body;
