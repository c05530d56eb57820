//! A channel for one value between two tasks of the loop.
//!
//! Used by everything that waits for a thread.

use outboard_reactor::Event;
use std::cell::RefCell;
use std::rc::Rc;

/// The end that sends the value. A value that nobody waits for is dropped.
#[derive(Debug)]
pub(crate) struct Sender<T>(Rc<Shared<T>>);

/// The end that waits for the value.
#[derive(Debug)]
pub(crate) struct Receiver<T>(Rc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    value: RefCell<Option<T>>,
    sent: Event,
}

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Rc::new(Shared { value: RefCell::new(None), sent: Event::default() });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    pub(crate) fn send(self, value: T) {
        self.0.value.replace(Some(value));
        self.0.sent.set();
    }
}

impl<T> Receiver<T> {
    pub(crate) async fn receive(self) -> T {
        loop {
            if let Some(value) = self.0.value.take() {
                return value;
            }
            self.0.sent.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_no_task_waits_for_is_dropped() {
        let value = Rc::new(());
        let (sender, receiver) = channel();
        drop(receiver);
        sender.send(value.clone());
        assert_eq!(Rc::strong_count(&value), 1);
    }

    #[test]
    fn a_value_arrives_whether_it_is_sent_before_the_wait_or_during_it() {
        outboard_reactor::run(async {
            let (sender, receiver) = channel();
            sender.send(1);
            assert_eq!(receiver.receive().await, 1);
            let (sender, receiver) = channel();
            outboard_reactor::spawn(async move { sender.send(2) });
            assert_eq!(receiver.receive().await, 2);
        })
        .unwrap();
    }
}
