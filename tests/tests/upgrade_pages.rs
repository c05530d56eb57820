//! The page cache across an upgrade: two servers with one directory, and a purge on one is one on both.

#![forbid(unsafe_code)]

#[path = "upgrade/installed.rs"]
#[allow(dead_code)]
mod installed;

use installed::{Installed, POOL, succeeded, text};
use outboard_e2e::{Docroot, Request, Response, eventually};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Each rendering is another.
const PAGE: &str = "<?php header('Cache-Control: max-age=600'); echo uniqid();";
/// Purges once a file is there.
const PURGE: &str = "<?php touch($_GET['at']); while (!file_exists($_GET['for'])) usleep(1000);\n\
    Outboard\\cache_purge(all: true); echo 'purged';";

fn page(server: &Installed) -> String {
    server.site.client().get("/page.php").expect(200).text()
}

fn cached(server: &Installed) -> Option<Response> {
    let request = Request::get("/page.php").header("Cache-Control", "only-if-cached");
    let response = server.site.client().send(&request);
    (response.status == 200).then_some(response)
}

#[test]
fn a_purge_of_the_old_server_purges_the_new_one_too() {
    let docroot = Docroot::of("reload");
    docroot.put("page.php", PAGE);
    docroot.put("purge.php", PURGE);
    let folder = docroot.beside().path().to_owned();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let tables = format!(
        "{POOL}\n[app.site.page_cache]\nmode = \"on\"\ndisk = \"{}\"\n",
        folder.join("pages").display()
    );
    let server = Installed::with(docroot, text(&tables));
    let first = page(&server);
    assert_eq!(page(&server), first);
    let (at, go) = (folder.join("at"), folder.join("go"));
    let mut wire = server.site.wire();
    let query = format!("at={}&for={}", at.display(), go.display());
    wire.send(format!("GET /purge.php?{query} HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\n\r\n"));
    eventually("the request runs", || at.exists());
    succeeded(&server.upgrade(), &server.site);
    let second = page(&server);
    assert_ne!(second, first, "the cache of the new server starts empty");
    assert_eq!(page(&server), second, "the new server has a cache");
    assert!(!server.site.child().output().contains("no page cache"));
    fs::write(&go, "").unwrap();
    assert!(wire.head().starts_with("HTTP/1.1 200"));
    eventually("the page is purged", || cached(&server).is_none());
    assert_ne!(page(&server), second);
    // The directory is one that the next server takes over, or not, as well.
    for _ in 0..2 {
        succeeded(&server.upgrade(), &server.site);
        let present = page(&server);
        assert_eq!(page(&server), present);
    }
    assert!(!server.site.child().output().contains("no page cache"));
}
