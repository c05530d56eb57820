//! The answer that one task of the loop waits for and another gives.

use outboard_reactor::Event;
use std::cell::RefCell;
use std::rc::Rc;

/// Shared by who gives and who waits. Given once; if nobody waits any more, it is dropped.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    answer: RefCell<Option<T>>,
    given: Event,
}

impl<T> Reply<T> {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self { answer: RefCell::new(None), given: Event::default() })
    }

    pub(crate) fn give(&self, answer: T) {
        self.answer.replace(Some(answer));
        self.given.set();
    }

    pub(crate) async fn wait(&self) -> T {
        loop {
            if let Some(answer) = self.answer.take() {
                return answer;
            }
            self.given.wait().await;
        }
    }
}
