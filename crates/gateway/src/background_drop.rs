//! [`BackgroundDrop`]: what is so large that letting go of it would hold the loop.
//!
//! Used for configurations: thousands of rules and their patterns take tens of milliseconds to free.
//! Invariant: the value is dropped on a thread of its own, which all of them share.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

/// See the module.
pub(crate) struct BackgroundDrop<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> BackgroundDrop<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send + 'static> Deref for BackgroundDrop<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is taken when this is dropped")
    }
}

impl<T: Send + fmt::Debug + 'static> fmt::Debug for BackgroundDrop<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Send + 'static> Drop for BackgroundDrop<T> {
    fn drop(&mut self) {
        // Without the thread it is dropped here.
        let _ = disposal().send(Box::new(self.0.take()));
    }
}

fn disposal() -> &'static Sender<Box<dyn Send>> {
    static DISPOSAL: OnceLock<Sender<Box<dyn Send>>> = OnceLock::new();
    DISPOSAL.get_or_init(|| {
        let (sender, receiver) = channel();
        std::thread::spawn(move || receiver.into_iter().for_each(drop::<Box<dyn Send>>));
        sender
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::{ThreadId, current};

    struct Tells(Sender<ThreadId>);

    impl Drop for Tells {
        fn drop(&mut self) {
            self.0.send(current().id()).unwrap();
        }
    }

    #[test]
    fn what_was_put_aside_is_dropped_on_another_thread() {
        let (sender, receiver) = channel();
        drop(BackgroundDrop::new(Tells(sender)));
        assert_ne!(receiver.recv().unwrap(), current().id());
    }
}
