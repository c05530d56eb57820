//! [`mailbox`]: messages from any thread to a task, and [`reply`]: one message back.
//!
//! Used by the threads of the server, each of which has a loop and state of its own. Invariants:
//! messages of one sender arrive in order; a message that was accepted is received, or dropped with
//! the receiver; a reply that cannot come any more ends the wait for it.
//!
//! A mailbox has no limit of its own: those who send have only so many requests under way, and wait
//! for the replies.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Makes a mailbox.
pub fn mailbox<T: Send>() -> (MailboxSender<T>, MailboxReceiver<T>) {
    let state = State { messages: VecDeque::new(), receiver: None, is_closed: false };
    let state = Arc::new(Mutex::new(state));
    (MailboxSender(state.clone()), MailboxReceiver(state))
}

#[derive(Debug)]
struct State<T> {
    messages: VecDeque<T>,
    /// The task that waits for a message.
    receiver: Option<Waker>,
    is_closed: bool,
}

/// Sends messages to a mailbox.
#[derive(Debug)]
pub struct MailboxSender<T>(Arc<Mutex<State<T>>>);

/// Receives the messages of a mailbox.
#[derive(Debug)]
pub struct MailboxReceiver<T>(Arc<Mutex<State<T>>>);

impl<T> Clone for MailboxSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send> MailboxSender<T> {
    /// Sends a message.
    ///
    /// # Errors
    /// The message, if the receiver is gone.
    pub fn send(&self, message: T) -> Result<(), T> {
        let receiver = {
            let mut state = lock(&self.0);
            if state.is_closed {
                return Err(message);
            }
            debug_assert!(
                state.receiver.is_none() || state.messages.is_empty(),
                "the receiver waits although there is a message"
            );
            state.messages.push_back(message);
            state.receiver.take()
        };
        receiver.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl<T> MailboxReceiver<T> {
    /// The next message, once there is one.
    pub async fn next(&self) -> T {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// The next message, if there is one; otherwise the task is woken when there is.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<T> {
        let mut state = lock(&self.0);
        match state.messages.pop_front() {
            Some(message) => Poll::Ready(message),
            None => {
                state.receiver = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Accepts no more messages; returns those that were sent before.
    pub fn close(self) -> impl IntoIterator<Item = T> {
        self.take_all()
    }

    fn take_all(&self) -> VecDeque<T> {
        let mut state = lock(&self.0);
        state.is_closed = true;
        std::mem::take(&mut state.messages)
    }
}

impl<T> Drop for MailboxReceiver<T> {
    fn drop(&mut self) {
        // Dropped outside of the lock, since a message may own a sender of this mailbox.
        drop(self.take_all());
    }
}

/// Makes the two ends of a reply.
pub fn reply<T: Send>() -> (ReplySender<T>, Reply<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, waiter: None, is_over: false }));
    (ReplySender(slot.clone()), Reply(slot))
}

#[derive(Debug)]
struct Slot<T> {
    value: Option<T>,
    waiter: Option<Waker>,
    /// Whether no value comes after the present one.
    is_over: bool,
}

/// Sends one reply.
#[derive(Debug)]
pub struct ReplySender<T>(Arc<Mutex<Slot<T>>>);

impl<T> ReplySender<T> {
    /// Sends it. If nobody waits for it any more it is dropped.
    pub fn send(self, value: T) {
        lock(&self.0).value = Some(value);
    }
}

impl<T> Drop for ReplySender<T> {
    fn drop(&mut self) {
        let waiter = {
            let mut slot = lock(&self.0);
            slot.is_over = true;
            slot.waiter.take()
        };
        waiter.into_iter().for_each(Waker::wake);
    }
}

/// A future reply; `None` if its sender was dropped.
#[derive(Debug)]
pub struct Reply<T>(Arc<Mutex<Slot<T>>>);

impl<T> Future for Reply<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = lock(&self.0);
        if slot.is_over {
            return Poll::Ready(slot.value.take());
        }
        slot.waiter = Some(context.waker().clone());
        Poll::Pending
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{run, spawn};
    use std::thread;

    #[test]
    fn messages_of_a_thread_arrive_in_order_and_are_answered() {
        let (sender, receiver) = mailbox::<(u32, ReplySender<u32>)>();
        let doubling = thread::spawn(|| {
            run(async move {
                for expected in 0..100 {
                    let (number, reply) = receiver.next().await;
                    assert_eq!(number, expected);
                    reply.send(number * 2);
                }
            })
        });
        run(async move {
            for number in 0..100 {
                let (back, doubled) = reply();
                assert!(sender.send((number, back)).is_ok());
                assert_eq!(doubled.await, Some(number * 2));
            }
        })
        .unwrap();
        doubling.join().unwrap().unwrap();
    }

    #[test]
    fn a_receiver_that_is_gone_returns_messages_and_ends_replies() {
        run(async {
            let (sender, receiver) = mailbox();
            let (back, lost) = reply::<()>();
            assert!(sender.send(Some(back)).is_ok());
            drop(receiver);
            assert_eq!(lost.await, None);
            assert!(sender.send(None).is_err());
        })
        .unwrap();
    }

    #[test]
    fn a_task_of_the_same_loop_is_woken_too() {
        run(async {
            let (sender, receiver) = mailbox();
            spawn(async move {
                let (back, got): (ReplySender<u32>, u32) = receiver.next().await;
                back.send(got + 1);
            });
            let (back, got) = reply();
            assert!(sender.send((back, 1)).is_ok());
            assert_eq!(got.await, Some(2));
        })
        .unwrap();
    }

    #[test]
    fn a_closed_mailbox_returns_what_was_sent_and_rejects_the_rest() {
        let (sender, receiver) = mailbox();
        let other = sender.clone();
        assert_eq!((sender.send(1), other.send(2)), (Ok(()), Ok(())));
        let left: Vec<u32> = receiver.close().into_iter().collect();
        assert_eq!(left, [1, 2]);
        assert_eq!((sender.send(3), other.send(4)), (Err(3), Err(4)));
    }

    #[test]
    fn a_message_that_owns_a_sender_of_its_mailbox_is_dropped_with_it() {
        #[derive(Debug)]
        struct Owner(MailboxSender<Owner>);
        impl Drop for Owner {
            fn drop(&mut self) {
                // The lock is free, and the mailbox is closed.
                assert!(lock(&self.0.0).is_closed);
            }
        }
        let (sender, receiver) = mailbox();
        let state = Arc::downgrade(&sender.0);
        assert!(sender.send(Owner(sender.clone())).is_ok());
        drop((receiver, sender));
        assert_eq!(state.strong_count(), 0, "no cycle is left");
    }

    #[test]
    fn a_reply_without_a_task_that_waits_for_it_is_dropped() {
        let value = Arc::new(());
        let (back, lost) = reply();
        drop(lost);
        back.send(value.clone());
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_sender_that_panics_ends_the_wait_for_its_reply() {
        run(async {
            let (back, lost) = reply::<u32>();
            let panics = thread::spawn(move || {
                let _back = back;
                panic!("in the test: the thread that owes a reply panics");
            });
            assert_eq!(lost.await, None);
            assert!(panics.join().is_err());
        })
        .unwrap();
    }
}
