//! Purging from PHP, in classic and in worker mode: in effect when the call returns.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Connection, Docroot, Fifo, Request};

/// The same site, answered by a script per request and by one that stays.
fn sites() -> [Configured; 2] {
    let worker =
        "mode = \"worker\"\nworker.script = \"www/worker.php\"\n[app.site.pool]\nmax = 4\n";
    ["[app.site.pool]\nmax = 4\n", worker].map(|mode| {
        let docroot = Docroot::of("page_cache");
        docroot.writable("state");
        let text = Configured::text("[app.site.page_cache]\nmode = \"on\"\n");
        let text = text.replace("root = \"www\"\n", &format!("root = \"www\"\n{mode}"));
        Configured::start(docroot, &text)
    })
}

fn tagged(name: &str) -> String {
    format!("/page.php/{name}?header[]=Cache-Tag:{name},all-posts")
}

#[track_caller]
fn is_kept(site: &Configured, target: &str) -> bool {
    let request = Request::get(target).header("Cache-Control", "only-if-cached");
    match site.client().send(&request).status {
        200 => true,
        504 => false,
        status => panic!("{target}: {status}"),
    }
}

#[track_caller]
fn purge(site: &Configured, wish: &str) -> String {
    site.client().send(&Request::new("POST", &format!("/purge.php?{wish}"))).expect(200).text()
}

#[test]
fn a_purge_by_a_script_takes_effect_before_it_returns() {
    for site in sites() {
        for (wish, said, kept) in [
            ("tags=post-1", "1\n", [false, true, true]),
            ("tags[]=post-1&tags[]=post-2", "2\n", [false, false, true]),
            ("prefixes=/page.php/post-1", "2\n", [false, true, false]),
            ("tags=all-posts", "3\n", [false, false, false]),
            ("all", "3\n", [false, false, false]),
            ("tags=nothing", "0\n", [true, true, true]),
            ("", "0\n", [true, true, true]),
        ] {
            let targets = ["post-1", "post-2", "post-10"].map(tagged);
            targets.iter().for_each(|target| drop(site.client().get(target).expect(200)));
            assert_eq!(purge(&site, wish), said, "{wish}");
            assert_eq!(targets.each_ref().map(|target| is_kept(&site, target)), kept, "{wish}");
        }
    }
}

#[test]
fn a_url_is_purged_in_both_schemes_and_softly_on_request() {
    for site in sites() {
        let target = tagged("a");
        site.client().get(&target).expect(200);
        let encoded = format!("https://{}{target}", site.address()).replace('&', "%26");
        assert_eq!(purge(&site, &format!("urls={encoded}&soft")), "1\n");
        let stale = site.client().get(&target).expect(200);
        assert_eq!(stale.header("x-cache"), Some("STALE"), "{:#?}", stale.headers);
    }
}

#[test]
fn a_page_that_is_being_made_during_a_purge_is_not_kept() {
    for site in sites() {
        let state = site.root().join("state");
        let (mut gate, mut running) =
            (Fifo::at(state.join("gate-1")), Fifo::at(state.join("running-1")));
        let target = tagged("slow");
        let mut visitor = Connection::open(site.address());
        visitor.send(&Request::get(&target).to_bytes("a")).expect("the server reads");
        running.hear();
        assert_eq!(purge(&site, "tags=slow"), "0\n");
        gate.open();
        let page = visitor.response().unwrap().expect(200);
        let status = page.header("cache-status").unwrap_or_default();
        assert!(status.contains("purged_meanwhile"), "{status}");
        assert!(!is_kept(&site, &target));
    }
}

#[test]
fn more_than_the_ring_takes_at_once_is_purged_as_well() {
    let [site, _] = sites();
    let target = tagged("last");
    site.client().get(&target).expect(200);
    let many: String = (0..200).map(|n| format!("{}{n}\n", "x".repeat(5000))).collect();
    let body = format!("{many}last");
    let request = Request::new("POST", "/purge_lines.php").body(body);
    site.client().send(&request).expect(200).saying("1\n");
    assert!(!is_kept(&site, &target));
}

#[test]
fn an_argument_that_is_not_a_string_is_a_type_error() {
    for site in sites() {
        let said = purge(&site, "tags[][]=a");
        assert!(said.starts_with("TypeError: "), "{said}");
        assert!(said.contains("must hold strings only, array found"), "{said}");
    }
}

#[test]
fn a_script_that_stays_may_purge_before_its_first_request() {
    let [_, site] = sites();
    assert_eq!(std::fs::read_to_string(site.root().join("state/boot")).unwrap(), "purged\n");
}

#[test]
fn without_a_cache_there_is_nothing_to_purge() {
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let site = Configured::start(docroot, &Configured::text(""));
    assert_eq!(purge(&site, "all"), "0\n");
}

#[test]
fn a_worker_of_the_old_generation_purges_the_new_cache() {
    let [site, _] = sites();
    let state = site.root().join("state");
    let (mut gate, mut running) =
        (Fifo::at(state.join("gate-purge")), Fifo::at(state.join("running-purge")));
    let mut editor = Connection::open(site.address());
    let request = Request::new("POST", "/purge.php?tags=shown&gate").to_bytes("a");
    editor.send(&request).expect("the server reads");
    running.hear();
    assert!(site.command("reload", &[]).status.success());
    let target = tagged("shown");
    site.client().get(&target).expect(200);
    assert!(is_kept(&site, &target));
    gate.open();
    editor.response().unwrap().expect(200).saying("1\n");
    assert!(!is_kept(&site, &target));
}

/// What happens to a request, and whether its page is stored.
const HANDLED: &str = r#"
set_exception_handler(function () { http_response_code(200); echo 'sorry'; });
switch ($_GET['do'] ?? '') {
    case 'throw': throw new LogicException();
    case 'rethrow': try { throw new LogicException(); } catch (LogicException $e) { throw $e; }
    case 'other': try { throw new LogicException(); } catch (RuntimeException) { break; }
    case 'shutdown': register_shutdown_function(function () { throw new LogicException(); }); break;
    case 'status': exit(3);
    case 'fatal': trigger_error('ended', E_USER_ERROR);
    case 'finish': http_response_code(200); echo 'sorry'; fastcgi_finish_request(); break;
    case 'caught': try { throw new LogicException(); } catch (RuntimeException | LogicException) { break; }
    case 'nested': try { (function () { throw new LogicException(); })(); } catch (Throwable) { break; }
    case 'exit': echo 'page'; exit;
}
echo 'page';
"#;

#[test]
fn a_page_that_its_handler_did_not_make_is_not_stored() {
    let boot = "set_error_handler(fn ($n, $text) => throw new ErrorException($text));";
    let ini = "[app.site.php.ini]\ndisplay_errors = \"1\"\nerror_reporting = \"32767\"\n";
    let worker = "mode = \"worker\"\nworker.script = \"www/handled_worker.php\"\n";
    let modes =
        [String::new(), worker.to_owned(), format!("{worker}worker.isolation = \"rewind\"\n")];
    for mode in modes {
        let docroot = Docroot::of("page_cache");
        docroot.put("handled.php", format!("<?php {HANDLED}"));
        let calls = "while (Outboard\\handle_request(function () { include __DIR__ . '/handled.php'; })) {}";
        docroot.put("handled_worker.php", format!("<?php {boot} {calls}"));
        let text = Configured::text(&format!("{ini}[app.site.page_cache]\nmode = \"on\"\n"));
        let text = text.replace("root = \"www\"\n", &format!("root = \"www\"\n{mode}"));
        let site = Configured::start(docroot, &text);
        for (what, is_stored) in [
            ("throw", false),
            ("rethrow", false),
            ("other", false),
            ("shutdown", false),
            ("status", false),
            ("fatal", false),
            ("finish", true),
            ("caught", true),
            ("nested", true),
            ("exit", true),
            ("page", true),
        ] {
            let target = format!("/handled.php?do={what}");
            let response = site.client().get(&target);
            let status = response.header("cache-status").unwrap_or_default();
            assert_eq!(is_kept(&site, &target), is_stored, "{mode} {what}: {status}");
        }
        // Ignored cookies, more than max_input_vars, in less than 8 KiB and in more.
        for (name, detail) in [("_ga", "unhandled"), ("_ga_of_a_long_name", "cookie_size")] {
            let cookies = vec![format!("{name}="); 1_001].join(";");
            let request = Request::get("/handled.php").header("Cookie", &cookies);
            let response = site.client().send(&request).expect(200);
            assert_eq!(response.text(), "page", "{mode}");
            let status = response.header("cache-status").unwrap_or_default();
            assert!(status.ends_with(detail), "{mode} {status}");
            assert!(!is_kept(&site, "/handled.php"), "{mode}");
        }
    }
}
