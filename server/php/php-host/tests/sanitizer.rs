//! The sanitizers report a deliberate fault of each kind, which ends the process. Run by
//! `ci/test-asan`, which names the checked memory in `OUTBOARD_FAULTS` and checks the reports; the
//! host of an ordinary build has no function that commits faults.

mod driver;

use driver::{Host, ScriptWorker, TempDir, get, settings};
use outboard_ring::control::Event;

/// Whether this run checks the memory of `shim` or `php`.
fn is_checked(memory: &str) -> bool {
    std::env::var("OUTBOARD_FAULTS").is_ok_and(|all| all.split(',').any(|one| one == memory))
}

fn assert_ended(event: &Event, kind: &str) {
    let Event::Exited { code, signal, .. } = event else {
        panic!("{kind}: {event:?}");
    };
    assert!(code.is_some_and(|code| code != 0) || signal.is_some(), "{kind}: {event:?}");
}

/// In classic mode.
fn assert_reported(kind: &str) {
    let folder = TempDir::new();
    folder.write("fault.php", &format!("<?php echo outboard_commit_fault('{kind}');"));
    let mut host = Host::with(settings());
    let mut worker = host.fork();
    worker.begin(&get("fault.php").root(&folder.0));
    assert_ended(&host.event(), kind);
}

#[test]
fn a_heap_fault_is_reported() {
    if is_checked("shim") {
        assert_reported("heap");
    }
}

#[test]
fn a_stack_fault_is_reported() {
    if is_checked("shim") {
        assert_reported("stack");
    }
}

#[test]
fn a_stack_fault_in_a_coroutine_after_a_bailout_is_reported() {
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
fn undefined_arithmetic_is_reported() {
    if is_checked("shim") {
        assert_reported("arithmetic");
    }
}

#[test]
fn a_use_after_free_of_php_memory_is_reported() {
    if is_checked("php") {
        assert_reported("php-memory");
    }
}
