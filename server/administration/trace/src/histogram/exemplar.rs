//! [`Exemplar`]: a traced request that stands for a bucket.

/// A traced request as an example of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exemplar {
    /// The id of its trace.
    pub trace_id: [u8; 16],
    /// The id of its span.
    pub span_id: [u8; 8],
    /// Its duration.
    pub us: u64,
    /// When it ended, in microseconds since the epoch.
    pub unix_us: u64,
}
