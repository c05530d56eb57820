//! Nothing of one request is left for the next, and what all share is shared.

use crate::{bench, pair, scrub};
use outboard_e2e::{Docroot, Pair, Request};

#[test]
fn changes_of_a_script_are_undone_for_the_next() {
    let docroot = Docroot::of("fidelity");
    let pair = Pair::start(&docroot.app().workers(1)).scrubbed(scrub());
    pair.same(&Request::get("/sees_leaks.php")).expect(200).holding("\"constant\":false");
    pair.same(&Request::get("/changes_directory.php")).expect(200).saying("changed\n");
    pair.same(&Request::get("/sees_leaks.php")).expect(200).holding("\"constant\":false");
    pair.same(&Request::get("/shown/fatal.php")).expect(200);
    pair.same(&Request::get("/limits.php")).expect(200).holding("display_errors=\n");
    pair.same(&Request::form("/input.php", &[("a", "1")]).header("Cookie", "c=1")).expect(200);
    pair.same(&Request::get("/input.php")).expect(200).holding("_POST []");
    pair.same(&Request::get("/header_forms.php")).expect(200);
    assert!(pair.same(&Request::get("/hello.php")).header("x-one").is_none());
}

#[test]
fn opcache_is_shared_by_all_workers() {
    let script = bench().docroot.path().join("hello.php");
    assert!(script.exists());
    for site in [&pair().reference, &pair().subject] {
        let mut client = outboard_e2e::Client::new(site.address());
        for _ in 0..4 {
            client.send(&Request::get("/hello.php")).expect(200);
        }
        let status = client.send(&Request::get("/opcache.php")).expect(200);
        assert!(status.text().contains("\"enabled\":true"), "{} {}", site.name(), status.text());
        assert!(!status.text().contains("\"hits\":null"), "{} {}", site.name(), status.text());
    }
}

#[test]
fn ini_set_lasts_for_one_request() {
    for _ in 0..8 {
        pair().same(&Request::get("/ini_leak.php")).expect(200);
        pair().same(&Request::get("/limits.php")).expect(200).holding("display_errors=\n");
    }
}
