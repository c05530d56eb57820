//! Records over HTTP: reads, conditional writes, ranges, access.

use crate::testing::{Response, Site, in_loop};
use outboard_http_server::{ListenerContext, Role};

fn site(keys: &str) -> Site {
    Site::new(&[], &tables(keys))
}

fn tables(keys: &str) -> String {
    let listen = "listen = \"127.0.0.1:0\"\n";
    format!("[kv]\ndata_dir = \"DIR/kv\"\ndurability = \"memory\"\n{listen}{keys}")
}

async fn request(site: &Site, method: &str, target: &str, lines: &str, body: &str) -> Response {
    site.request_to(ListenerContext::plain(Role::Entities), method, target, lines, body).await
}

const LOCAL: &str = "Host: localhost\r\n";

/// A request from this machine. The first Host is replaced, since clients use the address.
async fn local(site: &Site, method: &str, target: &str, lines: &str, body: &str) -> Response {
    let client = site.connect_to(ListenerContext::plain(Role::Entities));
    let text = crate::testing::request_text(method, target, lines, body);
    client.send(text.replace("Host: example.test\r\n", LOCAL));
    let text = client.receive_to_end().await;
    crate::testing::response(&text)
}

#[test]
fn a_record_is_written_read_and_deleted() {
    in_loop(async {
        let site = site("");
        assert_eq!(local(&site, "GET", "/v0/entity?id=a", "", "").await.status, 404);
        let written = local(&site, "PUT", "/v0/entity?id=a", "", "value").await;
        assert_eq!(written.status, 201);
        let read = local(&site, "GET", "/v0/entity?id=a", "", "").await;
        assert_eq!((read.status, &read.body[..]), (200, "value"));
        assert_eq!(read.header("etag"), written.header("etag"));
        assert_eq!(local(&site, "DELETE", "/v0/entity?id=a", "", "").await.status, 202);
        assert_eq!(local(&site, "GET", "/v0/entity?id=a", "", "").await.status, 404);
        assert_eq!(local(&site, "GET", "/v0/status", "", "").await.body, "ok\n");
    });
}

#[test]
fn conditions_protect_writes_and_save_reads() {
    in_loop(async {
        let site = site("");
        let put = async |lines: &str, value: &str| {
            local(&site, "PUT", "/v0/entity?id=a", lines, value).await
        };
        let first = put("If-None-Match: *\r\n", "1").await;
        assert_eq!(first.status, 201);
        assert_eq!(put("If-None-Match: *\r\n", "2").await.status, 412);
        let tag = first.header("etag").unwrap();
        assert_eq!(put(&format!("If-Match: {tag}\r\n"), "3").await.status, 201);
        assert_eq!(put(&format!("If-Match: {tag}\r\n"), "4").await.status, 412);
        assert_eq!(put("If-Match: *\r\nIf-None-Match: *\r\n", "5").await.status, 400);
        let read = local(&site, "GET", "/v0/entity?id=a", "", "").await;
        let lines = format!("If-None-Match: {}\r\n", read.header("etag").unwrap());
        assert_eq!(local(&site, "GET", "/v0/entity?id=a", &lines, "").await.status, 304);
        assert_eq!(
            local(&site, "GET", "/v0/entity?id=a", "If-Match: \"0\"\r\n", "").await.status,
            412
        );
    });
}

#[test]
fn a_range_lists_ids_and_values() {
    in_loop(async {
        let site = site("");
        for id in ["a", "b", "c"] {
            local(&site, "PUT", &format!("/v0/entity?id={id}"), "", "1").await;
        }
        let response = local(&site, "GET", "/v0/entities?start=a&end=c", "", "").await;
        assert_eq!((response.status, &response.body[..]), (200, "a\n1b\n1"));
        let response = local(&site, "HEAD", "/v0/entities?start=a", "", "").await;
        assert_eq!((response.status, &response.body[..]), (200, ""));
        assert_eq!(local(&site, "POST", "/v0/entities?start=a", "", "x").await.status, 405);
    });
}

#[test]
fn invalid_requests_are_refused_with_their_reason() {
    in_loop(async {
        let site = site("max_value = \"1 KiB\"\n");
        let invalid = local(&site, "GET", "/v0/entity", "", "").await;
        assert_eq!(
            (invalid.status, invalid.header("x-outboard-reason")),
            (400, Some("entity_request"))
        );
        assert!(invalid.body.starts_with("entity_request: "), "{}", invalid.body);
        assert_eq!(local(&site, "GET", "/v0/entity?id=a&namespace=none", "", "").await.status, 400);
        assert_eq!(local(&site, "PATCH", "/v0/entity?id=a", "", "").await.status, 405);
        let large = "x".repeat(2_000);
        assert_eq!(local(&site, "PUT", "/v0/entity?id=a", "", &large).await.status, 413);
        assert_eq!(site.refusals("entity_too_large"), 1);
    });
}

#[test]
fn a_foreign_host_name_is_refused() {
    in_loop(async {
        let site = site("");
        let response = request(&site, "GET", "/v0/entity?id=a", "", "").await;
        assert_eq!((response.status, site.refusals("entity_forbidden")), (403, 1));
    });
}

#[test]
fn a_token_gives_access() {
    in_loop(async {
        let site = site("token = \"a-secret-of-16-bytes\"\n");
        let response = local(&site, "GET", "/v0/status", "", "").await;
        assert_eq!((response.status, response.header("www-authenticate")), (401, Some("Bearer")));
        let wrong = "Authorization: Bearer a-secret-of-16-byte\r\n";
        assert_eq!(local(&site, "GET", "/v0/status", wrong, "").await.status, 401);
        let right = "Authorization: Bearer a-secret-of-16-bytes\r\n";
        assert_eq!(local(&site, "GET", "/v0/status", right, "").await.status, 200);
    });
}

#[test]
fn the_path_on_listeners_of_apps_needs_to_be_configured() {
    in_loop(async {
        let own = site("");
        assert_eq!(own.get("/v0/status").await.header("x-outboard-reason"), None);
        let shared = site("path = \"/records\"\ntrusted_clients = [\"127.0.0.1\"]\n");
        assert_eq!(shared.get("/records/status").await.body, "ok\n");
        assert_eq!(shared.get("/records").await.status, 404);
    });
}

#[test]
fn a_head_request_has_the_headers_of_the_record() {
    in_loop(async {
        let site = site("");
        local(&site, "PUT", "/v0/entity?id=a", "", "value").await;
        let get = local(&site, "GET", "/v0/entity?id=a", "", "").await;
        let head = local(&site, "HEAD", "/v0/entity?id=a", "", "").await;
        assert_eq!((head.status, &head.body[..]), (200, ""));
        assert_eq!(head.header("content-length"), Some("5"));
        assert_eq!(head.header("etag"), get.header("etag"));
    });
}

#[test]
fn invalid_conditions_change_nothing() {
    in_loop(async {
        let site = site("");
        local(&site, "PUT", "/v0/entity?id=a", "", "old").await;
        for lines in ["If-Match: unquoted\r\n", "If-None-Match: \"a\r\n", "If-Match: \r\n"] {
            let response = local(&site, "PUT", "/v0/entity?id=a", lines, "new").await;
            assert!(matches!(response.status, 400 | 412), "{lines}: {}", response.status);
        }
        assert_eq!(local(&site, "GET", "/v0/entity?id=a", "", "").await.body, "old");
    });
}

#[test]
fn binary_ids_and_values_are_stored_as_they_are() {
    in_loop(async {
        let site = site("");
        let target = "/v0/entity?id=%00%ff/%3F%26";
        assert_eq!(local(&site, "PUT", target, "", "a\0b\r\n\r\nc").await.status, 201);
        assert_eq!(local(&site, "GET", target, "", "").await.body, "a\0b\r\n\r\nc");
        assert_eq!(local(&site, "GET", "/v0/entity?id=%00%ff/%3F", "", "").await.status, 404);
        assert_eq!(local(&site, "PUT", "/v0/entity?id=%0", "", "x").await.status, 400);
    });
}

#[test]
fn a_range_of_many_records_arrives_completely() {
    in_loop(async {
        let site = site("max_value = \"1 MiB\"\n");
        let value = "x".repeat(300_000);
        for number in 0..5 {
            let target = format!("/v0/entity?id=r{number}");
            assert_eq!(local(&site, "PUT", &target, "", &value).await.status, 201);
        }
        let response = local(&site, "GET", "/v0/entities?start=r1&end=r4", "", "").await;
        let expected: String = (1..4).map(|number| format!("r{number}\n{value}")).collect();
        assert!(response.body == expected, "{} bytes", response.body.len());
        let empty = local(&site, "GET", "/v0/entities?start=s", "", "").await;
        assert_eq!((empty.status, &empty.body[..]), (200, ""));
    });
}

/// The records of a lead, and another thread.
fn lead_and_follower(keys: &str) -> [Site; 2] {
    let lead = site(keys);
    let follower = Site::following(&lead, &tables(keys));
    [lead, follower]
}

#[test]
fn a_call_has_the_same_result_on_every_thread() {
    in_loop(async {
        let sites = lead_and_follower("max_value = \"1 KiB\"\n[kv.namespace.other]\n");
        let [lead, follower] = &sites;
        let mut tags = Vec::new();
        for (number, (one, other)) in [(lead, follower), (follower, lead)].into_iter().enumerate() {
            let target = format!("/v0/entity?id=a{number}");
            assert_eq!(local(one, "GET", &target, "", "").await.status, 404);
            let value = format!("value {number}");
            let written = local(one, "PUT", &target, "If-None-Match: *\r\n", &value).await;
            assert_eq!(written.status, 201);
            let again = local(other, "PUT", &target, "If-None-Match: *\r\n", "2").await;
            assert_eq!(again.status, 412);
            let read = local(other, "GET", &target, "", "").await;
            assert_eq!((read.status, &read.body), (200, &value));
            assert_eq!(read.header("etag"), written.header("etag"));
            tags.push(read.header("etag").unwrap().to_owned());
        }
        for site in &sites {
            let all = local(site, "GET", "/v0/entities?start=a", "", "").await;
            assert_eq!((all.status, &all.body[..]), (200, "a0\nvalue 0a1\nvalue 1"));
            let elsewhere = "/v0/entity?id=a0&namespace=other";
            assert_eq!(local(site, "GET", elsewhere, "", "").await.status, 404);
            let none = "/v0/entity?id=a0&namespace=none";
            assert_eq!(local(site, "GET", none, "", "").await.status, 400);
            let large = "x".repeat(2_000);
            assert_eq!(local(site, "PUT", "/v0/entity?id=b", "", &large).await.status, 413);
        }
        let condition = format!("If-Match: {}\r\n", tags[1]);
        let deleted = local(follower, "DELETE", "/v0/entity?id=a1", &condition, "").await;
        assert_eq!(deleted.status, 202);
        assert_eq!(local(lead, "GET", "/v0/entity?id=a1", "", "").await.status, 404);
    });
}

#[test]
fn a_range_arrives_completely_and_in_order_on_another_thread() {
    in_loop(async {
        let [lead, follower] = lead_and_follower("max_value = \"1 MiB\"\n");
        let value = "x".repeat(200_000);
        for number in 0..9 {
            let target = format!("/v0/entity?id=r{number}");
            assert_eq!(local(&lead, "PUT", &target, "", &value).await.status, 201);
        }
        for (bounds, numbers) in [("start=r", 0..9), ("start=r1&end=r4", 1..4), ("start=s", 0..0)] {
            let response = local(&follower, "GET", &format!("/v0/entities?{bounds}"), "", "").await;
            let expected: String = numbers.map(|number| format!("r{number}\n{value}")).collect();
            assert!(response.body == expected, "{bounds}: {} bytes", response.body.len());
        }
    });
}

#[test]
fn without_a_lead_the_records_cannot_be_reached() {
    in_loop(async {
        let [_lead, follower] = lead_and_follower("");
        // The other end is dropped: the lead has ended.
        follower.gateway.shards.set_lead(crate::shards::ShardHandle::new().0);
        let read = local(&follower, "GET", "/v0/entity?id=a", "", "").await;
        assert_eq!(read.status, 504);
        let written = local(&follower, "PUT", "/v0/entity?id=a", "", "1").await;
        assert_eq!(written.status, 504);
    });
}
