//! The sanitizers see what they are there for: a fault of each kind, committed on purpose, ends the
//! process. Run by `ci/test-asan`, which says in `OUTBOARD_FAULTS` whose memory is checked and looks
//! at the reports; a host of an ordinary build has no function that commits faults.

mod driver;

use driver::{Host, ScriptWorker, TempDir, get, settings};
use outboard_ring::control::Event;

/// Whether faults in the memory of `shim` or `php` are to be seen in this run.
fn is_checked(memory: &str) -> bool {
    std::env::var("OUTBOARD_FAULTS").is_ok_and(|all| all.split(',').any(|one| one == memory))
}

fn assert_ended(event: &Event, kind: &str) {
    let Event::Exited { code, signal, .. } = event else {
        panic!("{kind}: {event:?}");
    };
    assert!(code.is_some_and(|code| code != 0) || signal.is_some(), "{kind}: {event:?}");
}

/// In a script per request.
fn assert_seen(kind: &str) {
    let folder = TempDir::new();
    folder.write("fault.php", &format!("<?php echo outboard_commit_fault('{kind}');"));
    let mut host = Host::with(settings());
    let mut worker = host.fork();
    worker.begin(&get("fault.php").root(&folder.0));
    assert_ended(&host.event(), kind);
}

#[test]
fn a_fault_in_the_heap_is_seen() {
    if is_checked("shim") {
        assert_seen("heap");
    }
}

#[test]
fn a_fault_on_the_stack_is_seen() {
    if is_checked("shim") {
        assert_seen("stack");
    }
}

#[test]
fn a_fault_on_the_stack_of_a_coroutine_that_a_bailout_has_left_is_seen() {
    if !is_checked("shim") {
        return;
    }
    let mut app = ScriptWorker::concurrent(
        4,
        &driver::serve(
            "Outboard\\sleep(0.01);
             if ($at === 'ends') { exit('left'); }
             return (string) outboard_commit_fault('stack');",
        ),
    );
    assert_eq!(app.get("ends"), "left");
    app.worker.begin(&get("fault"));
    assert_ended(&app.host.event(), "stack of a coroutine");
}

#[test]
fn undefined_arithmetic_is_seen() {
    if is_checked("shim") {
        assert_seen("arithmetic");
    }
}

#[test]
fn a_use_of_memory_that_php_has_freed_is_seen() {
    if is_checked("php") {
        assert_seen("php-memory");
    }
}
