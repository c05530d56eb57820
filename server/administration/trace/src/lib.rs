//! Traces: the context of a request, its spans, which of them are exported, and their encoding; and
//! [`histogram`]s of latencies, whose exemplars name traces.
//!
//! Without I/O; the gateway records spans and exports what is encoded here. The formats are W3C Trace
//! Context (<https://www.w3.org/TR/trace-context/>) and OTLP over HTTP with protobuf. Invariants: what
//! clients, workers and instrumented programs send is checked and bounded; what is not exported is counted.

#![forbid(unsafe_code)]

mod context;
pub mod histogram;
mod ids;
mod otlp;
mod partial_success;
pub mod protobuf;
mod queue;
mod recording;
mod recordings;
mod retry;
mod sampling;
mod scope;
mod span;
mod state;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use context::TraceContext;
pub use ids::{Ids, SpanId, TraceId};
pub use otlp::{Resource, request, span_entry};
pub use partial_success::PartialSuccess;
pub use queue::{Batch, SpanQueue};
pub use recording::Recording;
pub use recordings::Recordings;
pub use retry::{Backoff, is_retryable, retry_after_ms};
pub use sampling::{Sampling, Verdict};
pub use scope::Scope;
pub use span::{Kind, Span, Value};
pub use state::is_valid_state;
