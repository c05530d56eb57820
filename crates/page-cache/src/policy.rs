//! What is decided for an application rather than by its responses.

/// The numbers that the rules leave open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How long an anonymous page is kept that says nothing about it, in seconds; 0 for not at all.
    pub silent_s: u32,
    /// The share of the time since Last-Modified that is taken for a lifetime, in percent
    /// (RFC 9111 4.2.2 speaks of 10).
    pub heuristic_percent: u32,
    /// The most that such a lifetime may be, in seconds; 0 for no heuristics.
    pub heuristic_max_s: u32,
    /// `stale-while-revalidate` of responses that do not say, in seconds.
    pub stale_while_revalidate_s: u32,
    /// `stale-if-error` of responses that do not say, in seconds.
    pub stale_if_error_s: u32,
    /// Whether the directives of requests count, which RFC 9111 5.2.1 leaves to the cache.
    pub heeds_requests: bool,
    /// The longest body that is kept, in bytes.
    pub body_max_bytes: usize,
}

impl Policy {
    /// What RFC 9111 says and nothing more.
    pub const STANDARD: Self = Self {
        silent_s: 0,
        heuristic_percent: 10,
        heuristic_max_s: 86_400,
        stale_while_revalidate_s: 0,
        stale_if_error_s: 0,
        heeds_requests: true,
        body_max_bytes: 8 << 20,
    };
}
