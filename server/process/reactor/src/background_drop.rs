//! [`BackgroundDrop`]: a value that is so large that dropping it would delay the event loop.
//!
//! Used for configurations: thousands of rules and their patterns take tens of milliseconds to
//! free. Invariant: all values are dropped on one separate thread.

use crate::core_binding::unbound;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

/// See the module.
pub struct BackgroundDrop<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> BackgroundDrop<T> {
    /// `value`, dropped later on the thread.
    pub fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send + 'static> Deref for BackgroundDrop<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("the value is taken on drop only")
    }
}

impl<T: Send + fmt::Debug + 'static> fmt::Debug for BackgroundDrop<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Send + 'static> Drop for BackgroundDrop<T> {
    fn drop(&mut self) {
        // If the thread has ended, the value is dropped here.
        let sent = drop_thread().send(Box::new(self.0.take()));
        debug_assert!(sent.is_ok(), "the thread has ended: the drop of a value has panicked");
    }
}

fn drop_thread() -> &'static Sender<Box<dyn Send>> {
    static THREAD: OnceLock<Sender<Box<dyn Send>>> = OnceLock::new();
    THREAD.get_or_init(|| {
        let (sender, receiver) = channel();
        let drop_all = move || receiver.into_iter().for_each(drop::<Box<dyn Send>>);
        unbound(|| std::thread::spawn(drop_all));
        sender
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::{ThreadId, current};

    struct ReportsThread(Sender<ThreadId>);

    impl Drop for ReportsThread {
        fn drop(&mut self) {
            self.0.send(current().id()).unwrap();
        }
    }

    #[test]
    fn a_value_is_dropped_on_another_thread() {
        let (sender, receiver) = channel();
        drop(BackgroundDrop::new(ReportsThread(sender)));
        assert_ne!(receiver.recv().unwrap(), current().id());
    }
}
