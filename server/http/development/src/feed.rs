//! [`ChangeFeed`]: the changes that browsers with live reload wait for.
//!
//! Written by development mode, read by the handler of the event stream. Invariant: a browser that
//! missed several changes receives one event for all of them.

use crate::tree::Change;
use outboard_reactor::{TaskId, current_task, wake};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// See the module. Clones share their state.
#[derive(Debug, Clone)]
pub struct ChangeFeed(Rc<State>);

#[derive(Debug)]
struct State {
    /// Increases with each change, from a number that differs between starts: a page of an earlier
    /// run of the server is outdated.
    number: Cell<u64>,
    /// The last change of more than style sheets.
    last_page: Cell<u64>,
    waiting: RefCell<Vec<TaskId>>,
}

impl ChangeFeed {
    /// A feed whose first number follows `first`.
    pub(crate) fn after_number(first: u64) -> Self {
        let (number, last_page) = (Cell::new(first), Cell::new(first));
        Self(Rc::new(State { number, last_page, waiting: RefCell::default() }))
    }

    /// The number of the last change.
    pub fn number(&self) -> u64 {
        self.0.number.get()
    }

    /// Publishes changes.
    pub fn publish(&self, changes: &[Change]) {
        let number = self.0.number.get() + 1;
        self.0.number.set(number);
        if changes.iter().any(|change| *change != Change::Style) {
            self.0.last_page.set(number);
        }
        self.0.waiting.take().into_iter().for_each(wake);
    }

    /// The event for everything after `seen`, which becomes the last number. Without one, the
    /// current task is woken by the next change.
    pub fn next(&self, seen: &mut u64) -> Option<&'static str> {
        if *seen == self.0.number.get() {
            let task = current_task();
            let mut waiting = self.0.waiting.borrow_mut();
            if !waiting.contains(&task) {
                waiting.push(task);
            }
            return None;
        }
        Some(self.event_after(seen))
    }

    fn event_after(&self, seen: &mut u64) -> &'static str {
        let is_page = *seen > self.0.number.get() || *seen < self.0.last_page.get();
        *seen = self.0.number.get();
        if is_page { "page" } else { "style" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_covers_all_missed_changes() {
        let feed = ChangeFeed::after_number(0);
        let mut seen = 0;
        feed.publish(&[Change::Style]);
        assert_eq!(feed.event_after(&mut seen), "style");
        feed.publish(&[Change::Code]);
        feed.publish(&[Change::Style]);
        assert_eq!(feed.event_after(&mut seen), "page", "the style came with the page");
        assert_eq!(seen, feed.number());
    }

    #[test]
    fn a_page_of_an_earlier_run_is_outdated() {
        let feed = ChangeFeed::after_number(1_000);
        assert_eq!(feed.event_after(&mut 7), "page");
        assert_eq!(feed.event_after(&mut 2_000), "page", "or the clock was set back");
    }
}
