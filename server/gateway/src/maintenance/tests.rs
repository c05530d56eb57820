use crate::testing::{Response, Site, in_loop};

const FILES: &[(&str, &str)] = &[
    ("a.txt", "SENT a"),
    ("index.php", "SENT php"),
    ("down/page.html", "<p>the own page"),
    ("down/logo.svg", "<svg/>"),
    ("down/run.php", "SENT php"),
];

fn refused(response: &Response) {
    assert_eq!(response.status, 503, "{response:?}");
    assert!(!response.body.contains("SENT"), "{response:?}");
    assert_eq!(response.header("retry-after"), Some("300"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
}

#[test]
fn every_request_gets_503_in_maintenance() {
    in_loop(async {
        let site = Site::new(FILES, "maintenance = true");
        for target in
            ["/", "/a.txt", "//a.txt", "/%61.txt", "/missing", "/index.php/a.txt", "/down/logo.svg"]
        {
            for method in ["GET", "POST", "PURGE", "OPTIONS"] {
                refused(&site.request(method, target, "", "").await);
            }
        }
        assert!(site.get("/").await.body.contains("in maintenance"));
        let upgrade = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
        let client = site.connect();
        client.send(format!(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\n{upgrade}\r\n"
        ));
        refused(&crate::testing::response(&client.receive_to_end().await));
        assert!(site.refusals("maintenance") > 20);
    });
}

#[test]
fn the_page_and_its_files_are_served_and_no_script() {
    in_loop(async {
        let keys = "[app.site.maintenance]\npage = \"down/page.html\"\nassets = [\"/down/\"]\n\
                    [app.site.error_pages]\n5xx = \"a.txt\"\n";
        let site = Site::new(FILES, keys);
        assert_eq!(site.get("/down/logo.svg").await.body, "<svg/>");
        for target in [
            "/",
            "/down/run.php",
            "/down/missing",
            "/down/",
            "/down/../a.txt",
            "/down/run.php/logo.svg",
        ] {
            let response = site.get(target).await;
            refused(&response);
            assert_eq!(response.body, "<p>the own page", "{target}");
            assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
        }
    });
}

#[test]
fn allowed_clients_get_the_app() {
    in_loop(async {
        let keys = |network: &str| format!("[app.site.maintenance]\nallow = [\"{network}\"]\n");
        let site = Site::new(FILES, &keys("127.0.0.0/8"));
        assert_eq!(site.get("/a.txt").await.body, "SENT a");
        let site = Site::new(FILES, &keys("192.0.2.0/24"));
        // The client is not who it claims to be.
        let lie = "X-Forwarded-For: 192.0.2.7\r\n";
        refused(&site.request("GET", "/a.txt", lie, "").await);
    });
}

#[test]
fn the_file_switches_without_a_reload_with_a_look_a_second() {
    in_loop(async {
        let site = Site::new(FILES, "maintenance.file = \"on.flag\"\n");
        let (app, flag) = (site.app(), site.directory().join("on.flag"));
        let maintenance = app.maintenance.as_ref().unwrap();
        assert!(!maintenance.is_on(0));
        // A link that leads nowhere exists too.
        std::os::unix::fs::symlink("/nonexistent", &flag).unwrap();
        assert!(!maintenance.is_on(999));
        assert!(maintenance.is_on(1_000));
        std::fs::remove_file(&flag).unwrap();
        assert!(maintenance.is_on(1_999));
        assert!(!maintenance.is_on(2_000));
    });
}

#[test]
fn a_file_that_cannot_be_looked_for_exists() {
    assert!(super::exists("/".as_ref()));
    assert!(super::exists(format!("/{}", "a".repeat(300)).as_ref()));
    assert!(!super::exists("/nonexistent/on".as_ref()));
    assert!(!super::exists("/dev/null/on".as_ref()));
}
