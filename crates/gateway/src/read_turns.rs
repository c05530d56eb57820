//! [`ReadTurns`]: whose answer is read next, when more comes from other servers than the loop should read
//! before it looks at its other sockets.
//!
//! One per gateway. Every [`Inflow`](crate::proxy) waits here after each piece of its body.
//! Invariants: turns go round in the order in which they were waited for, so that a thousand large
//! answers share what there is; a bounded number of them is read before other tasks run.

use outboard_reactor::{TaskId, current_task, spawn, wake, yield_now};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

/// Answers that are read before other tasks run: with what one of them reads, half a megabyte, which
/// takes less than a millisecond.
const ANSWERS_A_ROUND: usize = 8;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ReadTurns {
    waiting: RefCell<VecDeque<Weak<Ticket>>>,
    is_going_round: Cell<bool>,
}

/// One that waits; it has left when this is dropped.
#[derive(Debug)]
struct Ticket {
    task: TaskId,
    is_next: Cell<bool>,
}

impl ReadTurns {
    /// Waits until the others who wait already have had their turn.
    pub(crate) async fn wait(self: &Rc<Self>) {
        let ticket = Rc::new(Ticket { task: current_task(), is_next: Cell::new(false) });
        self.waiting.borrow_mut().push_back(Rc::downgrade(&ticket));
        if !self.is_going_round.replace(true) {
            spawn(self.clone().go_round());
        }
        poll_fn(|_| match ticket.is_next.get() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    async fn go_round(self: Rc<Self>) {
        while self.call_next() {
            yield_now().await;
        }
        self.is_going_round.set(false);
    }

    /// Gives the first of those who wait their turn; false when there was nobody.
    fn call_next(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let mut called = 0;
        while called < ANSWERS_A_ROUND
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

    /// Each takes three turns; who had which, in order.
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
    fn everybody_has_a_turn_before_anybody_has_another() {
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
    fn who_has_left_takes_no_turn() {
        run(async {
            let turns = Rc::new(ReadTurns::default());
            let begun = Rc::new(Cell::new(0));
            for number in 0..40 {
                let (turns, begun) = (turns.clone(), begun.clone());
                spawn(async move {
                    let mut wait = Box::pin(turns.wait());
                    let is_there =
                        poll_fn(|context| Poll::Ready(wait.as_mut().poll(context).is_ready()));
                    assert!(!is_there.await);
                    begun.set(begun.get() + 1);
                    if number % 2 == 0 {
                        drop(wait);
                        return;
                    }
                    wait.await;
                    begun.set(begun.get() - 1);
                });
            }
            while begun.get() != 20 || turns.is_going_round.get() {
                yield_now().await;
            }
            assert!(turns.waiting.borrow().is_empty());
        })
        .unwrap();
    }
}
