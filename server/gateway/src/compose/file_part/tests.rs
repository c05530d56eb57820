//! Files that are in memory, and that another thread reads.

use super::*;
use crate::testing::{Site, in_loop};
use outboard_reactor::yield_now;

async fn read(app: &Rc<App>, path: &str) -> Read {
    let part = FilePart::start(app, path);
    loop {
        if let Some(read) = part.0.take() {
            return read;
        }
        yield_now().await;
    }
}

#[test]
fn files_are_read_whole_and_counted_until_they_are_dropped() {
    in_loop(async {
        let large = "x".repeat(100_000);
        let site = Site::new(&[("small.html", "<b>"), ("large.html", &large)], "");
        let app = site.app();
        let account = &app.memory.responses;
        let (small, held) = read(&app, "/small.html").await.unwrap();
        assert_eq!((&small[..], held.bytes(), account.held_bytes()), (&b"<b>"[..], 3, 3));
        // It is too large for the cache of open files, and is read from its descriptor.
        let (bytes, of_large) = read(&app, "/large.html").await.unwrap();
        assert!(bytes == large.as_bytes());
        assert_eq!(account.held_bytes(), 100_003);
        drop((held, of_large));
        assert_eq!(account.held_bytes(), 0);
    });
}

#[test]
fn paths_that_are_not_served_are_no_parts() {
    in_loop(async {
        let site = Site::new(&[("a.php", "<?php"), ("folder/a.html", "")], "");
        let app = site.app();
        for path in ["/none.html", "/a.php", "/folder", "/.env"] {
            let failure = read(&app, path).await.unwrap_err();
            assert_eq!(failure.reason, Reason::PartFailed, "{path}");
            assert!(failure.text.starts_with(path), "{}", failure.text);
        }
    });
}

#[test]
fn a_file_for_which_there_is_no_memory_fails() {
    in_loop(async {
        let large = "x".repeat(100_000);
        let site = Site::new(&[("large.html", &large)], "");
        site.gateway.server.memory.set_limit(1 << 16);
        let failure = read(&site.app(), "/large.html").await.unwrap_err();
        assert_eq!(failure, Failure::no_memory());
    });
}
