//! The pause after failures: longer after each, and different for different names.

/// The pause after this many failures, of at least one. Names that failed together, such as all of an
/// unreachable server, are not retried together: a pause is between 3/4 and 5/4 of its length.
pub(super) fn delay_s(pauses_s: &[u64], failures: u32, name: &str) -> u64 {
    let index = (failures.max(1) as usize - 1).min(pauses_s.len() - 1);
    let pause_s = pauses_s[index];
    pause_s * 3 / 4 + pause_s * fraction(name) / 2 / FRACTIONS
}

pub(super) const FRACTIONS: u64 = 1 << 16;

/// A number below [`FRACTIONS`] that is the same for a name at each start (FNV-1a).
pub(super) fn fraction(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ hash >> 32) % FRACTIONS
}
