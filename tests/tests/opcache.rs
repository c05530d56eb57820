//! The opcode cache of a running app: looked into, emptied without losing a request, and not to be
//! thrown away by an application again and again.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot};
use serde_json::Value;

fn site() -> Configured {
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let ini = "\"opcache.enable\" = 1\n\"opcache.file_update_protection\" = 0\n";
    Configured::start(docroot, &Configured::text(ini))
}

fn kept_scripts(site: &Configured) -> u64 {
    let output = site.command("opcache", &["status", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let status: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let counts = &status["apps"]["site"]["opcache_statistics"];
    counts["num_cached_scripts"].as_u64().unwrap_or_else(|| panic!("{status}"))
}

#[test]
fn it_can_be_looked_into_and_begun_anew() {
    let site = site();
    assert_eq!(kept_scripts(&site), 0);
    site.client().get("/page.php").expect(200);
    assert_eq!(kept_scripts(&site), 1);
    let told = String::from_utf8(site.command("opcache", &["status"]).stdout).unwrap();
    assert!(told.starts_with("site  ") && told.contains("scripts   1 kept"), "{told}");
    let reset = site.command("opcache", &["reset"]);
    assert_eq!(String::from_utf8_lossy(&reset.stdout), "generation 2 serves\n");
    assert_eq!(kept_scripts(&site), 0);
}

#[test]
fn an_application_may_reset_it_now_and_then() {
    let site = site();
    assert_eq!(site.client().get("/reset.php").expect(200).text(), "[true,false]\n");
    // The pause is that of all workers together.
    assert_eq!(site.client().get("/reset.php").expect(200).text(), "[false,false]\n");
}

#[test]
fn an_app_without_it_says_so() {
    let docroot = Docroot::of("page_cache");
    let site = Configured::start(docroot, &Configured::text("\"opcache.enable\" = 0\n"));
    let told = String::from_utf8(site.command("opcache", &["status"]).stdout).unwrap();
    assert!(told.contains("opcache is off"), "{told}");
}
