//! What PHP workers request of the gateway: fetches, by HTTP and of the entity store.
//!
//! [`FetchOperations`] executes the calls of an app's workers. [`Entities`] is the
//! entity store of a generation with the rights of its apps, which the gateway also serves over
//! HTTP. Invariant: a worker reaches the namespaces of its own app only, and its calls are counted in
//! the memory of its app.

#![forbid(unsafe_code)]

mod client_span;
mod entities;
mod fetch;
#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg(test)]
mod testing;

pub use client_span::{ClientSpan, is_trace_context};
pub use entities::{Elsewhere, Entities, Owner, Pressure, reason};
pub use fetch::FetchOperations;
