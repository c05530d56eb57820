//! The gateway: routing, handlers, generations and the admin socket. It links no PHP.
//!
//! One I/O thread runs everything here on the loop of `outboard_reactor`; state is shared as `Rc`
//! and never locked. The path of a request:
//!
//! ```text
//! http-server ─▶ dispatch ─▶ route ─▶ files ────────────────────────▶ response
//!                               ├───▶ page_cache ─▶ origin ─▶ script ─▶ php-pool ═ring═ worker
//!                               │                       └───▶ proxy ─▶ upstream
//!                               └───▶ compose: scripts, files, upstreams
//! ```
//!
//! The command line calls [`server::serve`]; everything else is wired from there.

#![forbid(unsafe_code)]

mod access;
mod access_log;
mod admin;
mod admin_admission;
mod admin_reply;
mod admission;
mod app;
mod app_operations;
mod app_table;
mod cache_requirements;
mod certificates;
mod classic_snapshots;
mod cold_files;
mod compose;
mod compression;
mod conditions;
pub mod configuration;
mod control;
mod dashboard;
mod datagrams;
mod debugging;
mod direct;
mod direct_accounts;
mod dispatch;
mod entity_api;
mod error_pages;
mod file_compressor;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod gathering;
mod generation;
mod latencies;
mod listeners;
mod listing;
mod live_reload;
mod logs;
mod maintenance;
mod measured;
mod metrics;
mod mirror;
mod observe;
mod opcache;
mod options;
mod origin;
mod origin_response;
mod page_cache;
mod pool_starter;
mod prefetch;
mod privileges;
mod proxy;
mod redirects;
mod refusal;
mod request;
mod request_memory;
mod response_head;
mod route;
mod script;
pub mod server;
mod server_error;
pub mod server_event;
mod server_link;
mod server_timing;
mod shards;
mod snapshot_admin;
mod spread;
mod status;
mod streams;
#[cfg(test)]
mod testing;
mod tracing;
mod upgrade_link;
mod upstream_admin;
mod upstream_body;
mod upstream_call;
mod upstream_watch;
mod upstreams;
