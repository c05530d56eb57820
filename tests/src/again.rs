//! Pages that were visited once, requested again in random order: a server that carries something over from one
//! request to the next gives another response the second time.

use crate::pair::Visit;
use crate::{Request, Visited};

/// A random order that a seed repeats (xorshift64*).
#[derive(Debug)]
struct Order {
    state: u64,
}

impl Order {
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let high = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        high as usize % bound
    }
}

impl Visited {
    /// Requests `count` of the pages in a random order, in which each comes several times, as one visitor or another.
    /// Asserts that each response is the reference's, and that it was the same processes that responded, rewound.
    #[track_caller]
    pub fn again(&self, visits: &mut [Visit<'_>], count: usize) {
        let seed = std::env::var("OUTBOARD_E2E_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(0x9e37_79b9_7f4a_7c15);
        let (rewinds, mut of_php) = (visits[0].rewinds(), 0);
        let mut order = Order { state: seed };
        let mut before = Vec::new();
        for number in 0..count {
            let visitor = order.below(visits.len());
            let visit = &mut visits[visitor];
            let target = &self.pages[order.below(self.pages.len())];
            let translated = visit.translated(target);
            let (response, difference) =
                visit.compare(&Request::get(target), &Request::get(&translated));
            if let Some(difference) = difference {
                let log = visit.subject_log();
                panic!(
                    "request {number} of seed {seed}: GET {target} as visitor {visitor} differs:\n  {difference}\n\
                     before it: {before:#?}\n--- log:\n{log}"
                );
            }
            of_php += u64::from(response.header("x-powered-by").is_some());
            before.push(target);
            before.drain(..before.len().saturating_sub(5));
        }
        let rewinds = visits[0].rewinds() - rewinds;
        // Some scripts of an application may be another server's.
        assert!(rewinds >= of_php * 3 / 4, "{rewinds} rewinds after {of_php} requests of PHP");
    }
}
