//! Consistent hashing by rendezvous: each server has a score for a key, and the highest is chosen.
//!
//! Called by the group. Invariants: a key keeps its server while that one is there; if it is not, only its
//! keys move, to all others by weight. Unlike a ring of points this needs no memory, for a pass over the
//! servers, of which there are few.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The hash of a key, the same in all processes.
pub fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// The score of a server for a key: with the weight w and a uniform u in (0, 1), -w / ln u.
pub(crate) fn score(key: u64, server: u64, weight: u64) -> f64 {
    let bits = xxh3_64_with_seed(&key.to_le_bytes(), server);
    let uniform = ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    -(weight as f64) / uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(key: u64, servers: &[(u64, u64)]) -> u64 {
        let scored = servers.iter().map(|(server, weight)| (score(key, *server, *weight), server));
        *scored.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap().1
    }

    #[test]
    fn keys_are_spread_by_weight_within_a_few_percent() {
        let servers = [(hash(b"a"), 1), (hash(b"b"), 2), (hash(b"c"), 1)];
        let mut counts = [0; 3];
        for key in 0..40_000u64 {
            let server = choose(hash(&key.to_le_bytes()), &servers);
            counts[servers.iter().position(|(one, _)| *one == server).unwrap()] += 1;
        }
        for (count, expected) in counts.into_iter().zip([10_000i32, 20_000, 10_000]) {
            assert!((count - expected).abs() < expected / 20, "{counts:?}");
        }
    }

    #[test]
    fn only_the_keys_of_a_missing_server_move() {
        let servers = [(hash(b"a"), 1), (hash(b"b"), 1), (hash(b"c"), 1)];
        let mut moved = 0;
        for key in 0..10_000u64 {
            let before = choose(hash(&key.to_le_bytes()), &servers);
            let after = choose(hash(&key.to_le_bytes()), &servers[1..]);
            match before == servers[0].0 {
                true => moved += 1,
                false => assert_eq!(before, after),
            }
        }
        assert!((3_000..3_700).contains(&moved), "{moved}");
    }
}
