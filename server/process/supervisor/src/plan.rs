//! Decisions about processes: pure functions of a snapshot and the time.
//!
//! Called by the gateway at events and ticks. Invariant: no module below reads a clock, a file or a
//! random number; the same snapshot always gives the same decision.

pub mod backoff;
pub mod deadline;
pub mod placement;
pub mod recycle;
pub mod restart;
pub mod scale;
