//! Waiting for a state that the server reaches without saying so: one helper with a pause between two
//! looks and a bound. What announces itself is awaited as an event: [`crate::Child::wait_for`] for a line
//! of output, [`crate::Process`] for the end of a process, [`crate::Fifo`] for a script.

use std::fmt::Debug;
use std::time::{Duration, Instant, SystemTime};

/// Only a broken server needs it; generous, because the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
/// A test that looked all the time would take the processor from the server that it waits for.
const PAUSE: Duration = Duration::from_millis(10);

/// What a look at the server can find: `bool`, `Option` with the value that was awaited, or `Result`,
/// whose error says what was found instead.
pub trait Look {
    /// What is there in the end.
    type Found;

    /// The value, or a text about what was there instead, which may be empty.
    fn found(self) -> Result<Self::Found, String>;
}

impl Look for bool {
    type Found = ();

    fn found(self) -> Result<(), String> {
        if self { Ok(()) } else { Err(String::new()) }
    }
}

impl<T> Look for Option<T> {
    type Found = T;

    fn found(self) -> Result<T, String> {
        self.ok_or_else(String::new)
    }
}

impl<T, E: Debug> Look for Result<T, E> {
    type Found = T;

    fn found(self) -> Result<T, String> {
        self.map_err(|error| format!(": {error:#?}"))
    }
}

/// Looks again and again until `look` succeeds, for a minute at most; `what` says what is awaited.
#[track_caller]
pub fn eventually<L: Look>(what: &str, look: impl FnMut() -> L) -> L::Found {
    eventually_within(PATIENCE, what, look)
}

/// The same for work that is known to take longer than a minute on a busy machine.
#[track_caller]
pub fn eventually_within<L: Look>(
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> L,
) -> L::Found {
    let deadline = Instant::now() + patience;
    loop {
        // Read before the look: a test that was not scheduled meanwhile still has its last look.
        let is_last = Instant::now() >= deadline;
        match look().found() {
            Ok(found) => return found,
            Err(instead) if is_last => panic!("not within {patience:?}: {what}{instead}"),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Waits until the clock shows another second, to all who read it: what time(2) reports may be some milliseconds
/// behind.
pub fn another_second() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is past 1970");
    std::thread::sleep(Duration::new(now.as_secs() + 1, 20_000_000) - now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_returned_when_it_is_there() {
        let mut looks = 0;
        let value = eventually("the third look", || {
            looks += 1;
            (looks == 3).then_some("there")
        });
        assert_eq!((value, looks), ("there", 3));
    }

    #[test]
    #[should_panic(expected = "not within 0ns: a four: 3")]
    fn the_last_look_is_in_the_message() {
        eventually_within(Duration::ZERO, "a four", || Err::<(), _>(3));
    }
}
