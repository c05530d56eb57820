//! Files and pages that a script has the gateway send.

use crate::testing::{Response, Site, Upstream, in_loop};

fn site(keys: &str) -> Site {
    let files = [("index.php", "<?php"), ("files/a.txt", "0123456789"), ("other.php", "<?php")];
    Site::new(&files, keys)
}

async fn respond_with(site: &Site, lines: &str, header: &str) -> Response {
    site.with_php("GET", "/index.php", lines, |php| {
        php.respond(200, &[header, "Content-Type: text/x-own", "Set-Cookie: a=1"], "instead");
    })
    .await
}

#[test]
fn a_file_of_the_root_is_sent_under_the_headers_of_the_script() {
    in_loop(async {
        let site = site("");
        let path = site.directory().join("www/files/a.txt");
        let header = format!("X-Sendfile: {}", path.display());
        let response = respond_with(&site, "", &header).await;
        assert_eq!((response.status, &response.body[..]), (200, "0123456789"));
        assert_eq!(response.header("content-type"), Some("text/x-own"));
        assert_eq!(
            (response.header("set-cookie"), response.header("x-sendfile")),
            (Some("a=1"), None)
        );
        assert!(response.header("etag").is_some());
        let response = respond_with(&site, "Range: bytes=1-2\r\n", &header).await;
        assert_eq!((response.status, &response.body[..]), (206, "12"));
    });
}

#[test]
fn a_path_on_disk_is_not_decoded_and_a_url_has_no_parent_segment() {
    in_loop(async {
        let keys = "[app.site.sendfile]\naccel = { \"/protected/\" = \"DIR/www/files\" }\n";
        let files = [
            ("index.php", "<?php"),
            ("files/u1/..%2Fu2%2Fs.txt", "own"),
            ("files/u1/90%.txt", "percent"),
            ("files/u1/what?.txt", "question"),
            ("files/u2/s.txt", "secret"),
        ];
        let site = Site::new(&files, keys);
        let root = site.directory().join("www/files");
        for (name, status, body) in [
            ("u1/..%2Fu2%2Fs.txt", 200, "own"),
            ("u1/90%.txt", 200, "percent"),
            ("u1//./what?.txt", 200, "question"),
            ("u1/../u2/s.txt", 502, ""),
            ("u1%2Fwhat%3F.txt", 404, ""),
        ] {
            let header = format!("X-Sendfile: {}/{name}", root.display());
            let response = respond_with(&site, "", &header).await;
            assert_eq!(response.status, status, "{name}");
            assert!(status != 200 || response.body == body, "{name}: {}", response.body);
        }
        for (path, status) in [
            ("/protected/u1/../u2/s.txt", 502),
            ("/protected/u1/%2e%2e/u2/s.txt", 502),
            ("/protected/u1/..%2Fu2%2Fs.txt", 502),
            ("/elsewhere/../protected/u2/s.txt", 502),
            ("/protected/u2/s.txt?..", 200),
            ("/protected/u1/what%3F.txt", 200),
            ("/protected/u1/90%25.txt", 200),
        ] {
            let response = respond_with(&site, "", &format!("X-Accel-Redirect: {path}")).await;
            assert_eq!(response.status, status, "{path}");
        }
    });
}

#[test]
fn a_file_elsewhere_is_not_sent() {
    in_loop(async {
        let site = site("");
        for path in ["/etc/passwd", "relative", ""] {
            let response = respond_with(&site, "", &format!("X-Sendfile: {path}")).await;
            assert_eq!(response.status, 502, "{path}");
        }
        let missing = site.directory().join("www/none.txt");
        let response = respond_with(&site, "", &format!("X-Sendfile: {}", missing.display())).await;
        assert_eq!(response.status, 404);
        let outside = format!("X-Sendfile: {}/www/../outboard.toml", site.directory().display());
        assert_eq!(respond_with(&site, "", &outside).await.status, 502);
    });
}

#[test]
fn a_prefix_leads_to_its_directory_for_scripts_only() {
    in_loop(async {
        let keys = "[app.site.sendfile]\naccel = { \"/protected/\" = \"DIR/www/files\" }\n";
        let site = site(keys);
        let response = respond_with(&site, "", "X-Accel-Redirect: /protected/a.txt").await;
        assert_eq!((response.status, &response.body[..]), (200, "0123456789"));
        assert_eq!(site.get("/protected/a.txt").await.status, 404);
    });
}

#[test]
fn a_denied_file_is_sent_for_a_script() {
    in_loop(async {
        let site = site("deny = [\"/files/\"]\n");
        assert_eq!(site.get("/files/a.txt").await.status, 404);
        let response = respond_with(&site, "", "X-Accel-Redirect: /files/a.txt").await;
        assert_eq!((response.status, &response.body[..]), (200, "0123456789"));
    });
}

#[test]
fn another_script_gets_a_request_without_a_body() {
    in_loop(async {
        let site = site("");
        let client = site.connect();
        client.send(crate::testing::request_text("POST", "/index.php", "", "body"));
        let php = site.next_php_request().await;
        php.respond(200, &["X-Accel-Redirect: /other.php?x=1"], "");
        let other = site.next_php_request().await;
        let fields = other.view().fields();
        assert_eq!(fields[outboard_ring::request::Field::Method as usize], b"GET");
        assert_eq!(fields[outboard_ring::request::Field::Query as usize], b"x=1");
        assert_eq!(other.body(), b"");
        // A second redirect would not end.
        other.respond(200, &["X-Accel-Redirect: /index.php"], "");
        assert!(client.receive_to_end().await.starts_with("HTTP/1.1 502 "));
    });
}

#[test]
fn an_internal_proxy_route_is_reached_by_scripts_only() {
    in_loop(async {
        let upstream = Upstream::with_body("object");
        let keys = format!(
            "[[app.site.proxy]]\npath = \"/store/**\"\ninternal = true\nupstream = \"http://127.0.0.1:{}\"\n",
            upstream.port
        );
        let site = site(&keys);
        assert_eq!(site.php_request().map(drop), None);
        let response = respond_with(&site, "", "X-Accel-Redirect: /store/a").await;
        assert_eq!((response.status, &response.body[..]), (200, "object"));
        assert_eq!(response.header("set-cookie"), Some("a=1"));
        assert!(upstream.last_request().starts_with("GET /store/a HTTP/1.1\r\n"));
    });
}
