//! The opcode cache of a running app: looked into, emptied without losing a request, and not to be
//! thrown away by an application again and again.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Process};
use serde_json::Value;

fn site() -> Configured {
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let ini = "\"opcache.enable\" = 1\n\"opcache.file_update_protection\" = 0\n";
    Configured::start(docroot, &Configured::text(ini))
}

fn cached_scripts(site: &Configured) -> u64 {
    let output = site.command("opcache", &["status", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let status: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let counts = &status["apps"]["site"]["opcache_statistics"];
    counts["num_cached_scripts"].as_u64().unwrap_or_else(|| panic!("{status}"))
}

#[test]
fn the_opcode_cache_is_shown_and_reset() {
    let site = site();
    assert_eq!(cached_scripts(&site), 0);
    site.client().get("/page.php").expect(200);
    assert_eq!(cached_scripts(&site), 1);
    let printed = String::from_utf8(site.command("opcache", &["status"]).stdout).unwrap();
    assert!(printed.starts_with("site  ") && printed.contains("scripts   1 cached"), "{printed}");
    let reset = site.command("opcache", &["reset"]);
    assert_eq!(String::from_utf8_lossy(&reset.stdout), "generation 2 is active\n");
    assert_eq!(cached_scripts(&site), 0);
}

#[test]
fn in_worker_mode_it_is_seen_without_the_script_that_stays() {
    let docroot = Docroot::of("page_cache");
    docroot.put("worker.php", WORKER);
    let ini = "\"opcache.enable\" = 1\n\"opcache.file_update_protection\" = 0\n";
    let mode = "[app.site.worker]\nscript = \"www/worker.php\"\n[app.site.pool]\nmax = 1\n";
    let text = Configured::text(&format!("{ini}{mode}"));
    let text = text.replace("[app.site]\n", "[app.site]\nmode = \"worker\"\n");
    let site = Configured::start(docroot, &text);
    assert_eq!(site.client().get("/").expect(200).text(), "request 1");
    assert_eq!(cached_scripts(&site), 1);
    assert_eq!(cached_scripts(&site), 1);
    assert_eq!(site.client().get("/").expect(200).text(), "request 2", "it was not asked");
}

const WORKER: &str = "<?php
$count = 0;
Outboard\\serve(function () use (&$count) { return 'request ' . ++$count; });
";

#[test]
fn an_application_may_reset_it_now_and_then() {
    let site = site();
    assert_eq!(site.client().get("/reset.php").expect(200).text(), "[true,false]\n");
    // The pause is that of all workers together.
    assert_eq!(site.client().get("/reset.php").expect(200).text(), "[false,false]\n");
}

/// A site with a script that a worker holds, with one that resets the cache, and with one that says
/// whether a reset is still to come and how many there were.
fn held_site() -> Configured {
    let docroot = Docroot::of("supervision");
    docroot.put("reset.php", "<?php opcache_reset();");
    let counts = "$s['restart_pending'], $s['opcache_statistics']['manual_restarts']";
    let code = format!("<?php $s = opcache_get_status(false); echo json_encode([{counts}]);");
    docroot.put("resets.php", code);
    let ini = "\"opcache.enable\" = 1\n\"opcache.file_update_protection\" = 0\n";
    Configured::start(
        docroot,
        &Configured::text(&format!("{ini}[app.site.pool]\nmin = 2\nmax = 2")),
    )
}

fn resets(site: &Configured) -> String {
    site.client().get("/resets.php").expect(200).text().to_owned()
}

#[test]
fn a_reset_waits_for_the_requests_that_use_the_cache() {
    let site = held_site();
    let held = site.hold();
    site.client().get("/reset.php").expect(200);
    assert_eq!(resets(&site), "[true,0]");
    held.finishes();
    assert_eq!(resets(&site), "[false,1]");
}

#[test]
fn a_reset_does_not_wait_for_a_worker_that_was_killed() {
    let site = held_site();
    let mut held = site.hold();
    site.client().get("/reset.php").expect(200);
    assert_eq!(resets(&site), "[true,0]");
    held.worker().kill();
    held.answer().expect(502);
    assert_eq!(resets(&site), "[false,1]");
}

#[test]
fn a_worker_that_is_new_waits_for_the_others_too() {
    let site = held_site();
    let held = site.hold();
    site.client().get("/reset.php").expect(200);
    let pid = site.client().get("/pid.php").expect(200).text().trim().parse();
    let other = Process::of(pid.expect("a process id"));
    other.kill();
    other.wait_until_gone();
    // Its successor answers, since there are two and one is held.
    assert_eq!(resets(&site), "[true,0]");
    held.finishes();
    assert_eq!(resets(&site), "[false,1]");
}

#[test]
fn resident_scripts_keep_what_they_run() {
    let docroot = Docroot::of("supervision");
    let code = "<?php while (frankenphp_handle_request(function () {
        echo json_encode([@opcache_reset(), error_get_last()['message']]);
    }));";
    docroot.put("resident.php", code);
    let text = "listen = \"127.0.0.1:0\"\n[php.ini]\n\"opcache.enable\" = 1\n\
                [app.site]\nroot = \"www\"\nmode = \"worker\"\n\
                [app.site.worker]\nscript = \"www/resident.php\"\n";
    let site = Configured::start(docroot, text);
    let answer = site.client().get("/").expect(200);
    assert!(
        answer
            .text()
            .starts_with("[false,\"opcache_reset(): cannot reset the cache of worker scripts")
    );
}

#[test]
fn an_app_without_it_says_so() {
    let docroot = Docroot::of("page_cache");
    let site = Configured::start(docroot, &Configured::text("\"opcache.enable\" = 0\n"));
    let printed = String::from_utf8(site.command("opcache", &["status"]).stdout).unwrap();
    assert!(printed.contains("opcache is off"), "{printed}");
}
