//! [`ThreadTimes`]: how long a thread has run, and how long it has waited for a processor.
//!
//! Used at intervals, for the thread of a gateway and for the main threads of its workers. Invariant:
//! a kernel that does not count gives `None`, never a guess.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The longest content: three numbers.
const LONGEST: usize = 64;

/// Times in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// On a processor.
    pub run_ns: u64,
    /// Ready to run, without a processor.
    pub wait_ns: u64,
}

impl Times {
    /// Both: how long it has computed, or would have.
    pub fn sum_ns(self) -> u64 {
        self.run_ns.saturating_add(self.wait_ns)
    }
}

/// See the module. The file `schedstat` of a thread stays open, because it is read often.
#[derive(Debug)]
pub struct ThreadTimes {
    file: File,
    /// At the last look.
    last: Times,
}

impl ThreadTimes {
    /// Those of the thread that calls it.
    pub fn of_this_thread() -> Option<Self> {
        Self::open("/proc/thread-self/schedstat")
    }

    /// Those of the main thread of a process.
    pub fn of_process(pid: i32) -> Option<Self> {
        Self::open(&format!("/proc/{pid}/schedstat"))
    }

    fn open(path: &str) -> Option<Self> {
        let file = File::open(path).ok()?;
        let last = read(&file)?;
        Some(Self { file, last })
    }

    /// Its whole time on a processor; `None` once the thread has exited.
    pub fn run_ns(&self) -> Option<u64> {
        read(&self.file).map(|times| times.run_ns)
    }

    /// The times since the last call, or since it was opened; `None` once the thread has exited.
    pub fn advance(&mut self) -> Option<Times> {
        let now = read(&self.file)?;
        let last = std::mem::replace(&mut self.last, now);
        Some(Times {
            run_ns: now.run_ns.saturating_sub(last.run_ns),
            wait_ns: now.wait_ns.saturating_sub(last.wait_ns),
        })
    }
}

fn read(file: &File) -> Option<Times> {
    let mut buffer = [0; LONGEST];
    let length = file.read_at(&mut buffer, 0).ok()?;
    parse(std::str::from_utf8(&buffer[..length]).ok()?)
}

/// Time on a processor, time in front of it, and the number of its turns (sched-stats.rst of Linux).
fn parse(text: &str) -> Option<Times> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let (run_ns, wait_ns) = (fields.next()??, fields.next()??);
    // A kernel that does not count writes zeros.
    (run_ns > 0).then_some(Times { run_ns, wait_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_not_known() {
        assert_eq!(parse("12 34 5\n"), Some(Times { run_ns: 12, wait_ns: 34 }));
        for text in ["", "0 0 0\n", "12\n", "12 x 5\n", "-1 2 3\n"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn this_thread_runs() {
        let Some(mut times) = ThreadTimes::of_this_thread() else { return };
        // A system call has the kernel count; so do ticks.
        std::thread::yield_now();
        let first = times.advance().unwrap();
        assert!(first.run_ns < 10_000_000_000, "only what came since: {first:?}");
        assert!(ThreadTimes::of_process(i32::MAX).is_none());
    }
}
