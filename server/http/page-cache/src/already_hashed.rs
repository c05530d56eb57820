//! The hasher of indices whose keys are hashes already: those of the store and of a front.

use std::hash::Hasher;

#[derive(Debug, Default)]
pub(crate) struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys of the index are u64");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
