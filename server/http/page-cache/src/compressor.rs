//! Compresses the pages that a shard has stored, one after the other, on a thread for computations.
//!
//! Called by the shard's [`crate::PageCache`] for each stored page. Invariants: a hit never waits for a
//! compression; a shard compresses at most one page at a time, so that this uses at most as many
//! processors as there are shards, and as there are threads for computations; pages that live too shortly to repay the work are left alone.

use crate::compress::compressed;
use crate::entry::Entry;
use crate::shared::Shared;
use outboard_http_semantics::Coding;
use outboard_reactor::{on_cpu_thread, spawn};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The number of pages that wait at most; others are sent uncompressed.
const WAITING_MAX: usize = 256;

/// The pages that wait for their compression.
#[derive(Default)]
pub(crate) struct Compressor {
    waiting: RefCell<VecDeque<Job>>,
    is_running: Cell<bool>,
}

/// A page, and what is done with it once it has its codings.
struct Job {
    entry: Shared,
    done: Box<dyn FnOnce(Entry)>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("waiting", &self.waiting.borrow().len()).finish()
    }
}

impl Compressor {
    /// Compresses a page in the background and passes it to `done`; false, without a call, if it is
    /// not worth it or too many wait.
    pub(crate) fn push(
        self: &Rc<Self>,
        entry: &Shared,
        done: impl FnOnce(Entry) + 'static,
    ) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        if !entry.may_compress() || waiting.len() >= WAITING_MAX {
            return false;
        }
        waiting.push_back(Job { entry: entry.clone(), done: Box::new(done) });
        if !self.is_running.replace(true) {
            spawn(self.clone().run());
        }
        true
    }

    async fn run(self: Rc<Self>) {
        while let Some(Job { entry, done }) = self.next() {
            let body = entry.plain().body.clone();
            let compress =
                move || Coding::ALL.map(|coding| Some((coding, compressed(coding, &body)?)));
            let codings = on_cpu_thread(compress).await.into_iter().flatten();
            done(codings.fold((*entry).clone(), |entry, (coding, body)| {
                entry.with_coding(coding, Arc::from(body))
            }));
        }
        self.is_running.set(false);
    }

    fn next(&self) -> Option<Job> {
        self.waiting.borrow_mut().pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{entry, entry_with, until};
    use outboard_reactor::run;

    fn page(path: &str) -> Shared {
        entry_with(path, 1, &[(b"Content-Type", b"text/html")]).into()
    }

    #[test]
    fn pages_get_all_codings_in_the_order_of_their_arrival() {
        run(async {
            let compressor = Rc::new(Compressor::default());
            let done: Rc<RefCell<Vec<Entry>>> = Rc::default();
            for path in ["/1", "/2", "/3"] {
                let done = done.clone();
                assert!(compressor.push(&page(path), move |coded| done.borrow_mut().push(coded)));
            }
            until(|| done.borrow().len() == 3).await;
            let paths: Vec<Vec<u8>> =
                done.borrow().iter().map(|entry| entry.key().path_and_query().to_vec()).collect();
            assert_eq!(paths, [b"/1", b"/2", b"/3"]);
            let has_codings = |entry: &Entry| entry.coded().len() == Coding::ALL.len();
            assert!(done.borrow().iter().all(has_codings));
        })
        .unwrap();
    }

    #[test]
    fn a_page_that_arrives_after_a_pause_is_compressed() {
        run(async {
            let compressor = Rc::new(Compressor::default());
            let count = Rc::new(Cell::new(0));
            for number in 1..=2 {
                let counted = count.clone();
                compressor.push(&page("/"), move |_| counted.set(counted.get() + 1));
                until(|| count.get() == number && !compressor.is_running.get()).await;
            }
        })
        .unwrap();
    }

    #[test]
    fn images_and_pages_beyond_the_limit_are_rejected() {
        run(async {
            let compressor = Rc::new(Compressor::default());
            let image = entry("/image", 1).into();
            assert!(!compressor.push(&image, |_| panic!("it is not text")));
            for _ in 0..WAITING_MAX {
                assert!(compressor.push(&page("/"), |_| {}));
            }
            assert!(!compressor.push(&page("/"), |_| panic!("too many wait")));
        })
        .unwrap();
    }
}
