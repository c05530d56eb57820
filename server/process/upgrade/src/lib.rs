//! A running server is replaced by a newer program without losing a request.
//!
//! ```text
//!  old gateway            starter            new gateway
//!      │ Start ────────────▶ │ fork, exec ────────▶ │  the same arguments, and `--take-over`
//!      │ Sockets … End ─────────────────────────────▶ │  reads its configuration, starts PHP
//!      │ ◀───────────────────────────────── Prepared │
//!      │ Released ──────────────────────────────────▶ │  closed here, opened there: the entity store
//!      │ ◀───────────────────────────────── Acquired │
//!      │ Complete ──────────────────────────────────▶ │  has what was in memory
//!      │ ◀──────────────────────────────────── Ready │  accepts connections
//!      │ Yours ──────────────────────────────────────▶ │  has the pid file and the socket files
//!      ▼ completes its requests and ends
//! ```
//!
//! The four lines in the middle are there if the server has an entity store or tasks. Then there is a [`Link`]
//! as well, by which each process reads and writes the records that the other one has.
//!
//! [`Starter`] is the old server's way to a new process, [`Successor`] its way to talk to it;
//! [`Predecessor`] is the new one's. Invariants: until `Ready` the new server has accepted nothing, so that
//! the old one goes on as if nothing had been, whatever becomes of it; what is started, its arguments and its
//! environment were fixed when the administrator started the server. See
//! `docs/decisions/0031-binary-upgrades.md`.

#![forbid(unsafe_code)]

mod launch;
mod link;
mod message;
mod predecessor;
mod starter;
mod successor;
#[cfg(test)]
mod tests;

pub use launch::{Launch, TAKE_OVER};
pub use link::{LINK_VERSION, Link};
pub use message::LinkFacts;
pub use predecessor::{Estate, Handed, Predecessor, Verdict};
pub use starter::{COMMAND, Starter, run};
pub use successor::{Stage, Successor};
