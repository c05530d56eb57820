//! Raw connections and datagrams of an app: framing, their hand-over to workers, acknowledgements.
//!
//! The gateway passes accepted connections and the calls of workers to a [`StreamServer`], one per app,
//! and implements [`WorkerLink`], the way to a worker. The connections belong to the gateway: a worker
//! that dies loses none, and a reload keeps them. Everything runs on one event loop.
//!
//! ```text
//!  connection ─▶ decoder ─▶ Item ─▶ seat (a worker's number) ─▶ process ─▶ WorkerLink
//!      ▲                                                          │ unacknowledged items return
//!      └── output ◀── calls ◀─────────────────────────────────────┘ to the seat when it dies
//! ```
//!
//! `docs/decisions/0019` has the rules of acknowledgement.

#![forbid(unsafe_code)]

mod calls;
mod connection;
mod datagram;
pub mod framing;
mod item;
mod measure;
mod output;
mod seats;
mod server;
mod session;
mod settings;

pub use connection::serve;
pub use datagram::{BoundDatagram, Receive, bind_datagram_before};
pub use seats::{Gone, WorkerLink};
pub use server::StreamServer;
