//! The process a script finds itself in: environment, extensions, functions, child processes.

use crate::{pair, scrub};
use outboard_e2e::{Docroot, Pair, Request};

#[track_caller]
fn same(target: &str) -> outboard_e2e::Response {
    pair().same(&Request::get(target))
}

#[test]
fn the_environment_is_the_configured_one() {
    let request = Request::get("/environment.php").header("X-Test", "seen");
    let response = pair().same(&request).expect(200).holding("\"configured\":\"e2e\"");
    assert!(response.text().contains("\"secret\":false"));
}

#[test]
fn php_reports_the_sapi_of_php_fpm() {
    same("/sapi.php").expect(200).holding("fpm-fcgi fpm-fcgi 8.");
}

#[test]
fn the_same_extensions_are_loaded() {
    // The SAPI's own, and pcntl, which Debian builds into the embed library alone.
    const OWN: &[&str] = &["cgi-fcgi", "outboard", "pcntl"];
    let mut visit = pair().visit();
    let [expected, actual] = [&mut visit.reference, &mut visit.subject].map(|client| {
        let list = client.send(&Request::get("/extensions.php")).expect(200).text();
        let names = list.lines().filter(|name| !OWN.contains(name));
        names.map(str::to_owned).collect::<Vec<_>>()
    });
    assert!(expected.contains(&"mysqli".to_owned()), "{expected:?}");
    assert_eq!(expected, actual);
}

#[test]
fn extensions_work() {
    same("/database.php").expect(200).holding("\u{dc}N\u{cf}CODE");
    same("/fiber.php").expect(200).holding("resumed with this");
}

#[test]
fn child_processes_can_be_started() {
    same("/process.php").expect(200).holding("through cat 0");
}

#[test]
fn functions_of_the_sapi_exist() {
    let pair = pair();
    let mut visit = pair.visit();
    for client in [&mut visit.reference, &mut visit.subject] {
        let list = client.send(&Request::get("/functions.php")).expect(200);
        for name in ["fastcgi_finish_request", "getallheaders", "apache_request_headers"] {
            assert!(list.text().contains(&format!("{name} true")), "{}", list.text());
        }
    }
}

#[test]
fn a_prepended_script_runs_before_and_an_appended_one_after() {
    let response = same("/prepended/script.php").expect(200);
    assert_eq!(response.text(), "before script.php\nscript\nafter\n");
    assert_eq!(response.header("x-prepended"), Some("yes"));
    same("/prepended/exits.php").expect(200);
    same("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn a_preloaded_function_is_there() {
    let docroot = Docroot::of("fidelity");
    let preload = docroot.path().join("preload.inc");
    let app = docroot.app().ini("opcache.preload", &preload.to_string_lossy());
    let app = app.ini("opcache.preload_user", "www-data");
    let pair = Pair::start(&app).scrubbed(scrub());
    pair.same(&Request::get("/preloaded.php")).expect(200).saying("preloaded\n");
}
