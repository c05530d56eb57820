//! A call that blocks the worker with all its requests is named in the log.

use crate::subject::{At, Subject, Worker};

/// The reports after these steps, and after one more, whose report ends the wait for others.
fn reports_after(verbs: &[&str]) -> String {
    let worker = Worker::start();
    for verb in verbs.iter().chain(&["last"]) {
        worker.step("stall", verb, &At::new());
    }
    worker.site.logs(&["were blocked for", "stall.php:28"]);
    let log = worker.site.child().output();
    let reports: Vec<&str> = log.lines().filter(|line| line.contains("were blocked for")).collect();
    reports.join("\n")
}

#[test]
fn a_blocking_call_is_logged_with_library_and_line() {
    let reports = reports_after(&[]);
    assert!(reports.contains("by nanosleep() in libffi.so"), "{reports}");
    assert!(reports.contains("; #0 usleep() "), "{reports}");
}

#[test]
fn a_blocking_call_of_one_line_is_logged_once() {
    let reports = reports_after(&["sleep", "sleep", "sleep"]);
    assert_eq!(reports.matches("stall.php:16").count(), 1, "{reports}");
}

#[test]
fn a_script_that_computes_or_is_suspended_is_not_logged() {
    let reports = reports_after(&["compute", "suspended"]);
    assert_eq!(reports.lines().count(), 1, "{reports}");
}
