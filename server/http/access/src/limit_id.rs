//! [`LimitId`]: a rate limit that gateways share, and the names of its buckets.
//!
//! Computed from the configuration, so that all gateways with the same one have the same names. Invariant:
//! a name is a part of a SHA-256, which no client can choose a collision of, and which tells the server
//! nothing about clients but who is the same.

use crate::rate::Rate;
use aws_lc_rs::digest::{Context, SHA256};

/// A bucket, for all gateways.
pub type BucketId = [u8; 16];

/// See the module.
#[derive(Clone, Debug)]
pub struct LimitId {
    /// What all its buckets' hashes begin with.
    begun: Hash,
}

#[derive(Clone)]
struct Hash(Context);

impl std::fmt::Debug for Hash {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Hash")
    }
}

impl LimitId {
    /// A limit with a rate, distinguished from others by these texts.
    pub fn new(rate: &Rate, texts: &[&[u8]]) -> Self {
        let mut hash = Context::new(&SHA256);
        hash.update(&rate.token_ns.to_le_bytes());
        hash.update(&rate.burst.to_le_bytes());
        for text in texts {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        // The client follows.
        hash.update(&u64::MAX.to_le_bytes());
        Self { begun: Hash(hash) }
    }

    /// The bucket of a client, by a kind of clients and what tells them apart.
    pub fn bucket(&self, kind: u8, client: &[u8]) -> BucketId {
        let mut hash = self.begun.0.clone();
        hash.update(&[kind]);
        hash.update(client);
        let mut id = [0; 16];
        id.copy_from_slice(&hash.finish().as_ref()[..16]);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_differ_by_limit_rate_kind_and_client() {
        let limit = |count, texts: &[&[u8]]| LimitId::new(&Rate::new(count, 1_000, 5), texts);
        let of = |limit: LimitId, kind, client: &[u8]| limit.bucket(kind, client);
        let first = of(limit(1, &[b"a", b"bc"]), 0, b"x");
        assert_eq!(first, of(limit(1, &[b"a", b"bc"]), 0, b"x"));
        for other in [
            of(limit(2, &[b"a", b"bc"]), 0, b"x"),
            of(limit(1, &[b"ab", b"c"]), 0, b"x"),
            of(limit(1, &[b"a", b"bc"]), 1, b"x"),
            of(limit(1, &[b"a", b"bc"]), 0, b"y"),
        ] {
            assert_ne!(first, other);
        }
    }
}
