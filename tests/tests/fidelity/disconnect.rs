//! A client that goes away: `connection_aborted`, `ignore_user_abort`, shutdown functions.

use crate::{fifo, pair};
use outboard_e2e::{Connection, Request, Site};

/// Goes away after the first piece and returns what the shutdown function reported.
fn report_of(script: &str, site: &dyn Site) -> String {
    let (mut gate, mut done) = (fifo(), fifo());
    let (gate_path, done_path) = (gate.path().display(), done.path().display());
    let target = format!("{script}?gate={gate_path}&done={done_path}");
    let mut connection = Connection::open(site.address());
    connection.send(&Request::get(&target).to_bytes("a")).unwrap();
    connection.head().unwrap().expect(200);
    assert_eq!(connection.chunk().unwrap().as_deref(), Some(b"started\n".as_slice()));
    drop(connection);
    gate.open();
    done.hear()
}

#[test]
fn a_script_that_ignores_the_abort_runs_to_its_end() {
    let expected = report_of("/abort_ignored.php", &*pair().reference);
    assert_eq!(expected, r#"{"end reached":true,"aborted":1,"status":1}"#);
    assert_eq!(report_of("/abort_ignored.php", &*pair().subject), expected);
}

#[test]
fn a_script_that_does_not_ends_at_its_next_output() {
    let expected = report_of("/abort_obeyed.php", &*pair().reference);
    assert_eq!(expected, r#"{"end reached":false,"aborted":1,"status":1}"#);
    assert_eq!(report_of("/abort_obeyed.php", &*pair().subject), expected);
}
