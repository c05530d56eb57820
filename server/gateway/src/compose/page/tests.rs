//! Pages that are whole, sent in pieces, or aborted, as the client has them.

use super::*;
use crate::testing::{Site, in_loop, response};
use outboard_http_server::Written;

fn page(app: &Rc<App>, pending: &str) -> Page {
    let mut page = Page::new(app);
    page.set_head(ResponseHead { status: 203, ..ResponseHead::default() });
    page.pending.extend_from_slice(pending.as_bytes());
    page
}

#[test]
fn a_page_that_is_complete_at_once_has_a_length() {
    in_loop(async {
        let site = Site::new(&[], "");
        let app = site.app();
        let text = site.handled("", async move |request, response| {
            let mut page = page(&app, "");
            assert!(page.flush(request, response).await, "nothing is pending");
            assert!(!page.is_started());
            page.pending.extend_from_slice(b"all of it");
            let summary = page.finish(request, response).await;
            assert_eq!((summary.status, summary.body_bytes), (203, 9));
            summary.written
        });
        let response = response(&text.await);
        assert_eq!((response.status, &*response.body), (203, "all of it"));
        assert_eq!(response.header("content-length"), Some("9"));
    });
}

#[test]
fn a_page_that_is_sent_in_pieces_has_an_end() {
    in_loop(async {
        let site = Site::new(&[], "");
        let app = site.app();
        let text = site.handled("", async move |request, response| {
            let mut page = page(&app, "first, ");
            assert!(page.flush(request, response).await && page.is_started());
            assert!(page.pending.is_empty());
            page.pending.extend_from_slice(b"rest");
            // The head was sent: this one is too late.
            page.set_head(ResponseHead { status: 500, ..ResponseHead::default() });
            let summary = page.finish(request, response).await;
            assert_eq!(summary.body_bytes, 11);
            summary.written
        });
        let text = text.await;
        assert!(text.ends_with("\r\n0\r\n\r\n"), "{text}");
        let response = response(&text);
        assert_eq!((response.status, &*response.body), (203, "first, rest"));
        assert_eq!(response.header("content-length"), None);
    });
}

#[test]
fn an_aborted_page_has_no_end() {
    in_loop(async {
        let site = Site::new(&[], "");
        let app = site.app();
        let text = site.handled("", async move |request, response| {
            let mut page = page(&app, "begun");
            assert!(page.flush(request, response).await);
            page.pending.extend_from_slice(b"never sent");
            let summary = page.abort();
            assert_eq!(
                (summary.written, summary.status, summary.body_bytes),
                (Written::Broken, 203, 5)
            );
            summary.written
        });
        assert_eq!(response(&text.await).body, "begun(incomplete)");
        let app = site.app();
        let nothing = site.handled("", async move |_, _| {
            let summary = page(&app, "not begun").abort();
            assert_eq!((summary.written, summary.body_bytes), (Written::Broken, 0));
            summary.written
        });
        assert_eq!(nothing.await, "");
    });
}

#[test]
fn what_is_pending_is_counted_until_it_is_sent() {
    in_loop(async {
        let site = Site::new(&[], "");
        let app = site.app();
        let account = app.memory.responses.clone();
        let before = account.held_bytes();
        let held = account.clone();
        site.handled("", async move |request, response| {
            let mut page = page(&app, &"x".repeat(10_000));
            page.count();
            assert_eq!(held.held_bytes(), before + 10_000);
            assert!(page.flush(request, response).await);
            assert_eq!(held.held_bytes(), before);
            page.pending.extend_from_slice(b"rest");
            page.count();
            assert_eq!(held.held_bytes(), before + 4);
            page.abort().written
        })
        .await;
        assert_eq!(account.held_bytes(), before);
    });
}

#[test]
fn header_rules_of_the_app_hold_for_a_page() {
    in_loop(async {
        let rule = "[[app.site.headers]]\nset = { \"X-Rule\" = \"1\" }\n";
        let site = Site::new(&[], rule);
        let app = site.app();
        let text = site.handled("", async move |request, response| {
            let mut page = page(&app, "a");
            page.apply_rules(request);
            page.finish(request, response).await.written
        });
        assert_eq!(response(&text.await).header("x-rule"), Some("1"));
    });
}
