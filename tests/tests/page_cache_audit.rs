//! The audit: pages that say that they are for everybody and are not are found, with what makes the
//! difference.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request, Response, eventually};
use serde_json::Value;

fn site(tables: &str) -> Configured {
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let tables = format!("[app.site.page_cache]\nmode = \"on\"\n{tables}");
    Configured::start(docroot, &Configured::text(&tables))
}

fn get(site: &Configured, target: &str) -> Response {
    let request = Request::get(target)
        .header("Cookie", "consent=yes; currency=USD; theme=dark")
        .header("X-Country", "CH")
        .header("X-Other", "1");
    site.client().send(&request).expect(200)
}

fn hit(site: &Configured, target: &str) {
    // Another visitor had it rendered.
    site.client().get(target).expect(200);
    let page = get(site, target);
    assert_eq!(page.header("x-cache"), Some("HIT"), "{:#?}", page.headers);
    assert!(page.text().contains("price EUR"), "that is what the audit is for");
}

fn stats(site: &Configured) -> Value {
    let output = site.command("cache", &["stats", "--json"]);
    serde_json::from_slice::<Value>(&output.stdout).expect("it is JSON")["apps"]["site"].clone()
}

#[test]
fn the_audit_names_the_page_and_the_cookie_or_header() {
    let site = site("");
    let [by_cookie, by_header, safe] = ["/by.php?cookie", "/by.php?header", "/by.php?"];
    for target in [by_cookie, by_header, safe] {
        hit(&site, target);
    }
    let output = site.command("cache", &["audit"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    for words in [
        "by.php?cookie\n        the cookie currency makes a difference at \"price USD\"",
        "by.php?header\n        the header x-country makes a difference at \"country CH\"",
        "3 pages examined, 2 unsafe\n",
    ] {
        assert!(printed.contains(words), "{words} in {printed}");
    }
    // It only tells.
    assert_eq!(get(&site, by_cookie).header("x-cache"), Some("HIT"));
}

#[test]
fn pages_that_are_the_same_for_everybody_are_left_in_peace() {
    let site = site("");
    hit(&site, "/by.php?");
    let output = site.command("cache", &["audit"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 pages examined, 0 unsafe\n");
}

#[test]
fn an_unsafe_page_is_removed_automatically() {
    let site = site("audit = \"100%\"\n");
    hit(&site, "/by.php?");
    eventually("a page is examined", || stats(&site)["audit"]["examined"].as_u64() > Some(0));
    hit(&site, "/by.php/other?cookie");
    eventually("the page is removed", || {
        get(&site, "/by.php/other?cookie");
        stats(&site)["audit"]["removed"].as_array().is_some_and(|removed| !removed.is_empty())
    });
    let page = get(&site, "/by.php/other?cookie");
    assert!(page.text().contains("price USD"));
    assert_eq!(page.header("x-cache"), Some("BYPASS"));
    let status = page.header("cache-status").unwrap_or_default();
    assert!(status.contains("detail=audit"), "{status}");
    assert_eq!(stats(&site)["audit"]["removed"], serde_json::json!(["/by.php/other"]));
    let safe = site.client().get("/by.php?").expect(200);
    assert_eq!(safe.header("x-cache"), Some("HIT"));
}
