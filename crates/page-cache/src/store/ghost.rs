//! What was thrown away lately, by hash: a table of fixed size in which a newer one takes the
//! place of an older. Called by [`super::Store`] alone.

/// One place for so many bytes of the budget: about as many as there are pages.
const BYTES_PER_PLACE: usize = 2048;

#[derive(Debug)]
pub(super) struct Ghost {
    /// The upper half of a hash in the place that its lower half names; 0 for none.
    places: Box<[u32]>,
}

impl Ghost {
    pub(super) fn new(budget_bytes: usize) -> Self {
        let count = (budget_bytes / BYTES_PER_PLACE).clamp(1, 1 << 20).next_power_of_two();
        Self { places: vec![0; count].into() }
    }

    pub(super) fn add(&mut self, hash: u64) {
        *self.place(hash) = mark(hash);
    }

    /// Whether it was thrown away lately; forgets it.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        let place = self.place(hash);
        let is_there = *place == mark(hash);
        if is_there {
            *place = 0;
        }
        is_there
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.places.len() * size_of::<u32>()
    }

    fn place(&mut self, hash: u64) -> &mut u32 {
        let mask = self.places.len() - 1;
        &mut self.places[hash as usize & mask]
    }
}

fn mark(hash: u64) -> u32 {
    ((hash >> 32) as u32).max(1)
}
