//! [`ReadTurns`]: the order in which responses of other servers are read, if more data arrives than
//! the loop should read before it polls its other sockets.
//!
//! One per gateway. Every proxied response waits here after each piece of its body.
//! Invariants: turns are given in the order of waiting, so that a thousand large responses share
//! the bandwidth; a bounded number of them is read before other tasks run.

use outboard_reactor::{TaskId, current_task, spawn, wake, yield_now};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

/// Responses that are read before other tasks run: half a megabyte in all, which takes less than a
/// millisecond.
const RESPONSES_PER_ROUND: usize = 8;

/// See the module.
#[derive(Debug, Default)]
pub struct ReadTurns {
    waiting: RefCell<VecDeque<Weak<Ticket>>>,
    is_running: Cell<bool>,
}

/// A waiting response; dropping it gives up its turn.
#[derive(Debug)]
struct Ticket {
    task: TaskId,
    is_next: Cell<bool>,
}

impl ReadTurns {
    /// Waits until those that wait already have had their turn.
    pub async fn wait(self: &Rc<Self>) {
        let ticket = Rc::new(Ticket { task: current_task(), is_next: Cell::new(false) });
        self.waiting.borrow_mut().push_back(Rc::downgrade(&ticket));
        if !self.is_running.replace(true) {
            spawn(self.clone().run_rounds());
        }
        poll_fn(|_| match ticket.is_next.get() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    async fn run_rounds(self: Rc<Self>) {
        while self.call_next() {
            yield_now().await;
        }
        self.is_running.set(false);
    }

    /// Wakes the first of those that wait; false if none waited.
    fn call_next(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let mut called = 0;
        while called < RESPONSES_PER_ROUND
            && let Some(ticket) = waiting.pop_front()
        {
            if let Some(ticket) = ticket.upgrade() {
                ticket.is_next.set(true);
                wake(ticket.task);
                called += 1;
            }
        }
        called > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::run;

    /// Three turns of each of `count` tasks: the tasks in the order of their turns.
    async fn taken_by(count: usize) -> Vec<usize> {
        let turns = Rc::new(ReadTurns::default());
        let taken = Rc::new(RefCell::new(Vec::new()));
        for number in 0..count {
            let (turns, taken) = (turns.clone(), taken.clone());
            spawn(async move {
                for _ in 0..3 {
                    turns.wait().await;
                    taken.borrow_mut().push(number);
                }
            });
        }
        while taken.borrow().len() < 3 * count {
            yield_now().await;
        }
        taken.take()
    }

    #[test]
    fn every_task_has_a_turn_before_any_has_another() {
        run(async {
            let taken = taken_by(50).await;
            let once: Vec<usize> = (0..50).collect();
            assert_eq!(taken, [&once[..], &once, &once].concat());
        })
        .unwrap();
    }

    #[test]
    fn a_round_has_a_bounded_number_of_turns() {
        run(async {
            let turns = ReadTurns::default();
            let ticket = || Rc::new(Ticket { task: current_task(), is_next: Cell::new(false) });
            let tickets: Vec<Rc<Ticket>> = (0..20).map(|_| ticket()).collect();
            turns.waiting.borrow_mut().extend(tickets.iter().map(Rc::downgrade));
            for expected in [8, 16, 20] {
                assert!(turns.call_next());
                assert_eq!(tickets.iter().filter(|one| one.is_next.get()).count(), expected);
            }
            assert!(!turns.call_next());
        })
        .unwrap();
    }

    #[test]
    fn a_dropped_wait_takes_no_turn() {
        run(async {
            let turns = Rc::new(ReadTurns::default());
            let waiting = Rc::new(Cell::new(0));
            for number in 0..40 {
                let (turns, waiting) = (turns.clone(), waiting.clone());
                spawn(async move {
                    let mut wait = Box::pin(turns.wait());
                    let is_ready =
                        poll_fn(|context| Poll::Ready(wait.as_mut().poll(context).is_ready()));
                    assert!(!is_ready.await);
                    waiting.set(waiting.get() + 1);
                    if number % 2 == 0 {
                        drop(wait);
                        return;
                    }
                    wait.await;
                    waiting.set(waiting.get() - 1);
                });
            }
            while waiting.get() != 20 || turns.is_running.get() {
                yield_now().await;
            }
            assert!(turns.waiting.borrow().is_empty());
        })
        .unwrap();
    }
}
