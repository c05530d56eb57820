//! Clients that repeat something for as long as the test does something else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs `test` while `count` threads run `client`, which repeats what it does until its argument is
/// true. The threads end also when `test` panics, which a flag that is set behind it would not achieve.
pub fn repeating<T>(
    count: usize,
    client: impl Fn(&dyn Fn() -> bool) + Sync,
    test: impl FnOnce() -> T,
) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ends = SetOnDrop(&is_over);
        for _ in 0..count {
            scope.spawn(|| client(&|| is_over.load(Ordering::Relaxed)));
        }
        test()
    })
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn clients_end_when_the_test_panics() {
        let panicked = catch_unwind(|| {
            let client = |is_over: &dyn Fn() -> bool| {
                while !is_over() {
                    thread::yield_now();
                }
            };
            repeating(2, client, || panic!("the test fails"));
        });
        assert!(panicked.is_err());
    }
}
