//! Static files: complete, in part, unchanged, refused.

use crate::testing::{Site, in_loop};

#[test]
fn a_file_is_sent_with_its_type_and_validators() {
    in_loop(async {
        let site = Site::new(&[("style.css", "body{}")], "");
        let response = site.get("/style.css").await;
        assert_eq!((response.status, &response.body[..]), (200, "body{}"));
        assert!(response.header("content-type").unwrap().starts_with("text/css"));
        assert_eq!(response.header("content-length"), Some("6"));
        assert!(response.header("etag").is_some() && response.header("last-modified").is_some());
    });
}

#[test]
fn a_head_request_has_the_headers_only() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "hello")], "");
        let response = site.request("HEAD", "/a.txt", "", "").await;
        assert_eq!((response.status, &response.body[..]), (200, ""));
        assert_eq!(response.header("content-length"), Some("5"));
    });
}

#[test]
fn an_unchanged_file_is_not_sent_again() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "hello")], "");
        let tag = site.get("/a.txt").await.header("etag").unwrap().to_owned();
        let lines = format!("If-None-Match: {tag}\r\n");
        let response = site.request("GET", "/a.txt", &lines, "").await;
        assert_eq!((response.status, &response.body[..]), (304, ""));
        let response = site.request("GET", "/a.txt", "If-Match: \"other\"\r\n", "").await;
        assert_eq!(response.status, 412);
    });
}

#[test]
fn a_range_is_sent_as_a_part() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "0123456789")], "");
        let response = site.request("GET", "/a.txt", "Range: bytes=2-4\r\n", "").await;
        assert_eq!((response.status, &response.body[..]), (206, "234"));
        assert_eq!(response.header("content-range"), Some("bytes 2-4/10"));
        let response = site.request("GET", "/a.txt", "Range: bytes=20-\r\n", "").await;
        assert_eq!((response.status, response.header("content-range")), (416, Some("bytes */10")));
    });
}

#[test]
fn several_ranges_are_sent_in_one_response() {
    in_loop(async {
        let content = format!("01{}89", ".".repeat(9_996));
        let site = Site::new(&[("a.txt", &content)], "");
        let lines = "Range: bytes=0-1,9998-9999\r\n";
        let response = site.request("GET", "/a.txt", lines, "").await;
        assert_eq!(response.status, 206);
        assert!(response.header("content-type").unwrap().starts_with("multipart/byteranges"));
        assert!(response.body.contains("\r\n01\r\n") && response.body.contains("\r\n89\r\n"));
    });
}

#[test]
fn a_large_file_is_sent_completely() {
    in_loop(async {
        let content = "0123456789abcdef".repeat(40_000);
        let site = Site::new(&[("large.txt", &content)], "");
        let response = site.get("/large.txt").await;
        assert_eq!(response.body.len(), content.len());
        assert!(response.body == content, "the content differs");
    });
}

#[test]
fn only_reads_of_files_are_allowed() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "hello")], "");
        let response = site.request("POST", "/a.txt", "", "x").await;
        assert_eq!((response.status, response.header("allow")), (405, Some("GET, HEAD")));
        assert_eq!(site.refusals("method_not_allowed"), 1);
    });
}

#[test]
fn header_rules_apply_to_files() {
    in_loop(async {
        let rules = "[[app.site.headers]]\npath = \"/assets/\"\nset = { X-A = \"1\" }\n";
        let site = Site::new(&[("assets/a.txt", "a"), ("b.txt", "b")], rules);
        assert_eq!(site.get("/assets/a.txt").await.header("x-a"), Some("1"));
        assert_eq!(site.get("/b.txt").await.header("x-a"), None);
    });
}

#[test]
fn what_lets_caches_store_is_not_sent_with_errors() {
    in_loop(async {
        let rules = "[[app.site.headers]]\npath = \"/assets/\"\n\
                     set = { Cache-Control = \"max-age=9\", X-A = \"1\" }\n\
                     [[app.site.headers]]\nstatus = [\"404\"]\nset = { X-B = \"2\" }\n";
        let site = Site::new(&[("assets/a.txt", "a")], rules);
        let (found, missing) = (site.get("/assets/a.txt").await, site.get("/assets/b.txt").await);
        let of = |name: &str| (found.header(name), missing.header(name));
        assert_eq!(of("cache-control"), (Some("max-age=9"), None));
        assert_eq!((of("x-a"), of("x-b")), ((Some("1"), Some("1")), (None, Some("2"))));
    });
}

#[test]
fn a_directory_is_redirected_to_its_slash_and_serves_its_index() {
    in_loop(async {
        let site = Site::new(&[("docs/index.html", "<p>")], "");
        let response = site.get("/docs?a=1").await;
        assert_eq!((response.status, response.header("location")), (301, Some("/docs/?a=1")));
        assert_eq!(site.get("/docs/").await.body, "<p>");
    });
}

#[test]
fn a_precompressed_file_is_sent_to_clients_that_accept_it() {
    in_loop(async {
        let site = Site::new(&[("a.css", "plain"), ("a.css.gz", "coded")], "");
        let response = site.request("GET", "/a.css", "Accept-Encoding: gzip\r\n", "").await;
        assert_eq!(
            (&response.body[..], response.header("content-encoding")),
            ("coded", Some("gzip"))
        );
        assert_eq!(site.get("/a.css").await.body, "plain");
    });
}
