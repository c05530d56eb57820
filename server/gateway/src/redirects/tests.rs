use crate::testing::{Response, Site, in_loop, response};
use outboard_http_server::{ListenerContext, Role};

const CONFIG: &str = "
    [app.shop]
    root = \"www\"
    hosts = [\"shop.test\", \"*.eu.shop.test\"]
    [app.any]
    root = \"www\"
    [[redirect]]
    hosts = [\"www.shop.test\", \"*.shop.test\"]
    to = \"https://shop.test\"
    [[redirect]]
    hosts = [\"x.eu.shop.test\", \"*.old.shop.test\"]
    to = \"http://x.test:81\"
    status = 308
";

async fn request(site: &Site, head: &str) -> Response {
    let client = site.connect_to(ListenerContext::plain(Role::Apps));
    client.send(format!("{head}\r\nConnection: close\r\n\r\n"));
    response(&client.receive_to_end().await)
}

async fn location(site: &Site, host: &str, target: &str) -> Option<String> {
    let response = request(site, &format!("GET {target} HTTP/1.1\r\nHost: {host}")).await;
    response.header("location").map(str::to_owned)
}

#[test]
fn the_closest_name_of_redirects_and_apps_responds() {
    in_loop(async {
        let site = Site::with_config(&[], CONFIG);
        for (host, expected) in [
            ("www.shop.test", Some("https://shop.test/a?b=1")),
            ("WWW.Shop.TEST.:8080", Some("https://shop.test/a?b=1")),
            ("other.shop.test", Some("https://shop.test/a?b=1")),
            ("x.eu.shop.test", Some("http://x.test:81/a?b=1")),
            ("a.old.shop.test", Some("http://x.test:81/a?b=1")),
            ("old.shop.test", Some("https://shop.test/a?b=1")),
            ("y.eu.shop.test", None),
            ("shop.test", None),
            ("elsewhere.test", None),
        ] {
            assert_eq!(location(&site, host, "/a?b=1").await.as_deref(), expected, "{host}");
        }
        let response = request(&site, "POST / HTTP/1.1\r\nHost: x.eu.shop.test").await;
        assert_eq!(response.status, 308);
    });
}

#[test]
fn a_request_never_chooses_the_host_of_a_redirect() {
    in_loop(async {
        let site = Site::with_config(&[], CONFIG);
        for target in [
            "/",
            "/?",
            "//evil.test",
            "//evil.test/%2e%2e",
            "/\\evil.test",
            "/%2f%2fevil.test",
            "/@evil.test",
            "/%0d%0aX-Evil:%201",
            "/..//evil.test",
            "/.evil.test",
            "/:80@evil.test",
            "/?//evil.test",
            "http://www.shop.test//evil.test",
            "http://www.shop.test?//evil.test",
            "http://www.shop.test",
        ] {
            let head = format!("GET {target} HTTP/1.1\r\nHost: www.shop.test");
            let response = request(&site, &head).await;
            assert!(!response.head.to_ascii_lowercase().contains("\nx-evil"), "{}", response.head);
            match response.status {
                301 => {
                    let location = response.header("location").unwrap();
                    assert!(location.starts_with("https://shop.test/"), "{target}: {location}");
                }
                status => assert_eq!(status, 400, "{target}"),
            }
        }
        // The host of an absolute target is the request's.
        let head = "GET http://other.test/a HTTP/1.1\r\nHost: www.shop.test";
        assert_eq!(request(&site, head).await.header("location"), None);
        assert_eq!(location(&site, "www.shop.test", "@evil.test").await, None);
    });
}
