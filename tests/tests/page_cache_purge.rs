//! Purging: by URL, prefix, tag and all, from the command line and by `PURGE`.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request};

fn site(tables: &str) -> Configured {
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let tables = format!("[app.site.page_cache]\nmode = \"on\"\n{tables}");
    Configured::start(docroot, &Configured::text(&tables))
}

const PURGE_HERE: &str = "purge_from = [\"127.0.0.1\"]";

#[track_caller]
fn is_kept(site: &Configured, target: &str) -> bool {
    let request = Request::get(target).header("Cache-Control", "only-if-cached");
    match site.client().send(&request).status {
        200 => true,
        504 => false,
        status => panic!("{target}: {status}"),
    }
}

fn tagged(name: &str) -> String {
    format!("/page.php/{name}?header[]=Cache-Tag:{name},all-posts")
}

fn fill(site: &Configured) -> [String; 3] {
    let targets = ["post-1", "post-2", "post-10"].map(tagged);
    for target in &targets {
        site.client().get(target).expect(200);
        assert!(is_kept(site, target));
    }
    targets
}

#[test]
fn the_command_line_purges_by_url_prefix_and_tag() {
    let site = site("");
    for (arguments, gone, said) in [
        (vec![tagged("post-1")], [true, false, false], "1 purged\n"),
        (vec!["--prefix".into(), "/page.php/post-1".into()], [true, false, true], "2 purged\n"),
        (vec!["--tag".into(), "post-2".into()], [false, true, false], "1 purged\n"),
        (
            vec!["--tag".into(), "post-1".into(), "--tag".into(), "post-2".into()],
            [true, true, false],
            "2 purged\n",
        ),
        (vec!["--tag".into(), "all-posts".into()], [true, true, true], "3 purged\n"),
        (vec!["--all".into()], [true, true, true], "3 purged\n"),
        (vec!["--tag".into(), "nothing".into()], [false, false, false], "0 purged\n"),
    ] {
        let targets = fill(&site);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = site.command("cache", &[&["purge"], &arguments[..]].concat());
        assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{arguments:?}");
        let kept = targets.each_ref().map(|target| !is_kept(&site, target));
        assert_eq!(kept, gone, "{arguments:?}");
    }
}

#[test]
fn the_command_line_lists_cached_pages() {
    let site = site("");
    let [first, ..] = fill(&site);
    let show = |arguments: &[&str]| {
        let output = site.command("cache", arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(show(&["list"]).lines().count(), 3);
    assert_eq!(show(&["list", "--prefix", "/page.php/post-1"]).lines().count(), 2);
    let page = show(&["get", &first]);
    assert!(page.contains("Cache-Tag: post-1,all-posts"), "{page}");
    assert!(page.contains("lifetime from DefaultTtl, for Anonymous"), "{page}");
    let stats = show(&["stats"]);
    assert!(stats.contains("3 stored, 0 evicted, 0 purged"), "{stats}");
    let nobody = site.command("cache", &["stats", "--app", "other"]);
    assert!(!nobody.status.success());
}

#[test]
fn purge_requests_are_for_trusted_addresses() {
    let site = site(PURGE_HERE);
    let targets = fill(&site);
    let purged = site.client().send(&Request::new("PURGE", &targets[0])).expect(200);
    assert_eq!(purged.text(), "{\"purged\":1}\n");
    assert!(!is_kept(&site, &targets[0]) && is_kept(&site, &targets[1]));
    let by_tag = Request::new("PURGE", "/").header("Surrogate-Key", "post-2 post-10");
    site.client().send(&by_tag).expect(200).saying("{\"purged\":2}\n");
    assert!(!is_kept(&site, &targets[1]) && !is_kept(&site, &targets[2]));
}

#[test]
fn untrusted_purge_requests_are_refused() {
    let site = site("purge_from = [\"192.0.2.0/24\"]");
    let [first, ..] = fill(&site);
    let refused = site.client().send(&Request::new("PURGE", &first)).expect(403);
    assert_eq!(refused.header("x-outboard-reason"), Some("purge_refused"));
    assert!(is_kept(&site, &first));
}

/// Behind a proxy that nobody has named, every visitor has the proxy's address.
#[test]
fn purge_requests_through_an_unnamed_proxy_are_refused() {
    let visitor = |site: &Configured, field: (&str, &str)| {
        let request = Request::new("PURGE", "/page.php").header(field.0, field.1);
        site.client().send(&request).status
    };
    let site_alone = site(PURGE_HERE);
    for field in [
        ("X-Forwarded-For", "192.0.2.1"),
        ("x-forwarded-for", "127.0.0.1"),
        ("Forwarded", "for=192.0.2.1"),
        ("X-Real-IP", "192.0.2.1"),
        ("Via", "1.1 proxy"),
    ] {
        assert_eq!(visitor(&site_alone, field), 403, "{field:?}");
    }
    assert_eq!(visitor(&site_alone, ("X", "1")), 200);
    let tables = format!("[app.site.page_cache]\nmode = \"on\"\n{PURGE_HERE}");
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let text = format!("trusted_proxies = [\"127.0.0.2\"]\n{}", Configured::text(&tables));
    let behind = Configured::start(docroot, &text);
    assert_eq!(visitor(&behind, ("X-Forwarded-For", "127.0.0.1")), 403);
    // The proxy's word counts, and it names another client.
    behind.rewrite(&text.replace("127.0.0.2", "127.0.0.1"));
    assert!(behind.command("reload", &[]).status.success());
    assert_eq!(visitor(&behind, ("X-Forwarded-For", "127.0.0.1")), 200);
    assert_eq!(visitor(&behind, ("X-Forwarded-For", "192.0.2.1")), 403);
}
