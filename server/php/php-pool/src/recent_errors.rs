//! [`RecentErrors`]: the latest errors of PHP, for the dashboard.
//!
//! One per thread, which its pools of all generations share. Invariant: it holds at most [`ERRORS_MAX`] errors, of at most
//! [`TEXT_MAX_BYTES`] each; the same error again is counted.

use crate::recent_slow::shorten;
use outboard_admin_api::dashboard::PhpError;
use std::cell::RefCell;
use std::collections::VecDeque;

const ERRORS_MAX: usize = 32;
const TEXT_MAX_BYTES: usize = 512;

/// See the module.
#[derive(Debug, Default)]
pub struct RecentErrors(RefCell<VecDeque<PhpError>>);

impl RecentErrors {
    /// Adds an error by its first line. The lines of a backtrace, which follow it, are no errors of their own.
    pub(crate) fn add(&self, app: &str, text: &str, at_ms: u64) {
        let first = text.lines().next().unwrap_or_default();
        if first.is_empty() || first.starts_with(['#', ' ', '\t']) || first == "Stack trace:" {
            return;
        }
        let mut line = first.to_owned();
        shorten(&mut line, TEXT_MAX_BYTES);
        let mut errors = self.0.borrow_mut();
        let known = errors.iter().position(|known| known.app == app && known.text == line);
        let mut error = known.and_then(|index| errors.remove(index)).unwrap_or_else(|| PhpError {
            app: app.to_owned(),
            text: line,
            ..PhpError::default()
        });
        (error.at_ms, error.count) = (at_ms, error.count + 1);
        errors.truncate(ERRORS_MAX - 1);
        errors.push_front(error);
        debug_assert!(errors.len() <= ERRORS_MAX, "{} errors", errors.len());
    }

    /// The errors, the latest first.
    pub fn list(&self) -> Vec<PhpError> {
        self.0.borrow().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_is_counted() {
        let errors = RecentErrors::default();
        errors.add("site", "PHP Fatal error:  a in /x.php:1\nStack trace:\n#0 {main}", 5);
        errors.add("other", "PHP Fatal error:  a in /x.php:1", 6);
        errors.add("site", "Stack trace:", 7);
        errors.add("site", "#0 /x.php(1): f()", 7);
        errors.add("site", "  thrown in /x.php on line 1", 7);
        errors.add("site", "PHP Fatal error:  a in /x.php:1", 8);
        let list = errors.list();
        let found: Vec<_> = list.iter().map(|one| (&one.app[..], one.count, one.at_ms)).collect();
        assert_eq!(found, [("site", 2, 8), ("other", 1, 6)]);
        assert_eq!(list[0].text, "PHP Fatal error:  a in /x.php:1");
    }

    #[test]
    fn the_latest_errors_are_held_and_cut() {
        let errors = RecentErrors::default();
        for number in 0..1_000 {
            errors.add("site", &format!("{number} {}", "ä".repeat(2_000)), number);
        }
        let list = errors.list();
        assert_eq!((list.len(), list[0].at_ms, list[31].at_ms), (ERRORS_MAX, 999, 968));
        assert!(list.iter().all(|one| one.text.capacity() <= TEXT_MAX_BYTES));
    }
}
