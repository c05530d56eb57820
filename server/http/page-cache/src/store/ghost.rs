//! Hashes of recently evicted entries, in a table of fixed size in which a newer one overwrites an
//! older. Called only by [`super::Store`].

/// The budget per slot; about as many slots as pages.
const BYTES_PER_SLOT: usize = 2048;

#[derive(Debug)]
pub(super) struct Ghost {
    /// The upper half of a hash in the slot that its lower half selects; 0 for none.
    slots: Box<[u32]>,
}

impl Ghost {
    pub(super) fn new(budget_bytes: usize) -> Self {
        let count = (budget_bytes / BYTES_PER_SLOT).clamp(1, 1 << 20).next_power_of_two();
        Self { slots: vec![0; count].into() }
    }

    pub(super) fn add(&mut self, hash: u64) {
        *self.slot(hash) = mark(hash);
    }

    /// Whether the hash was evicted recently; removes it.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        let slot = self.slot(hash);
        let found = *slot == mark(hash);
        if found {
            *slot = 0;
        }
        found
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>()
    }

    fn slot(&mut self, hash: u64) -> &mut u32 {
        let mask = self.slots.len() - 1;
        &mut self.slots[hash as usize & mask]
    }
}

fn mark(hash: u64) -> u32 {
    ((hash >> 32) as u32).max(1)
}
