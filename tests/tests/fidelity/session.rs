//! Sessions in files, over several requests of one visitor.

use crate::pair;
use outboard_e2e::Request;

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
fn a_destroyed_session_starts_anew() {
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
