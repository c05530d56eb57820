//! Sessions in files, over several requests of one visitor.

use crate::{fifo, pair};
use outboard_e2e::{Client, Connection, Request};

#[test]
fn a_session_counts_the_visits_of_its_visitor() {
    let mut visit = pair().visit();
    for number in 1..=5 {
        let response = visit.same(&Request::get("/session.php")).expect(200);
        assert!(response.text().starts_with(&format!("visits {number} ")), "{}", response.text());
    }
    pair().same(&Request::get("/session.php")).expect(200).holding("visits 1 ");
}

#[test]
fn a_session_gets_a_new_name_and_keeps_its_content() {
    let mut visit = pair().visit();
    visit.same(&Request::get("/session.php"));
    visit
        .same(&Request::get("/session_regenerate.php"))
        .expect(200)
        .holding("changed true visits 1");
    visit.same(&Request::get("/session.php")).holding("visits 2");
}

#[test]
fn a_destroyed_session_starts_empty() {
    let mut visit = pair().visit();
    visit.same(&Request::get("/session.php"));
    visit.same(&Request::get("/session_destroy.php")).expect(200);
    visit.same(&Request::get("/session.php")).holding("visits 1");
}

#[test]
fn a_forged_session_name_is_not_a_file_name() {
    for id in ["../../etc/passwd", "", "a%00b", "x".repeat(300).as_str()] {
        let request = Request::get("/session.php").header("Cookie", &format!("PHPSESSID={id}"));
        pair().same(&request).expect(200);
    }
}

#[test]
fn two_requests_of_one_session_come_one_after_the_other() {
    for site in [&pair().reference, &pair().subject] {
        let (mut gate, mut done) = (fifo(), fifo());
        let mut visitor = Client::new(site.address());
        visitor.send(&Request::get("/session.php")).expect(200);
        let cookie = format!("PHPSESSID={}", visitor.cookie("PHPSESSID").expect("it was set"));
        let (gate_path, done_path) = (gate.path().display(), done.path().display());
        let target = format!("/session_locked.php?gate={gate_path}&done={done_path}");
        let [mut first, mut second] = [(); 2].map(|()| Connection::open(site.address()));
        let request = Request::get(&target).header("Cookie", &cookie);
        first.send(&request.to_bytes("a")).unwrap();
        assert_eq!(done.hear(), "locked");
        let request = Request::get("/session_locked.php").header("Cookie", &cookie);
        second.send(&request.to_bytes("a")).unwrap();
        gate.open();
        first.response().unwrap().expect(200).saying("first\n");
        // Without the lock it would have looked before the first had written.
        second.response().unwrap().expect(200).saying("second sees by the first\n");
    }
}
