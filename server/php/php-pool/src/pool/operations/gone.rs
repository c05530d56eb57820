//! [`Gone`]: the end of the way to a worker.

/// The worker has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;
