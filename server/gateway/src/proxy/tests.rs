//! Proxied requests and their responses, with a server in the same event loop.

use crate::testing::{Response, Site, Upstream, in_loop, ok, wait_for};
use outboard_http_server::{ListenerContext, Role};

fn site(upstream: &Upstream, keys: &str) -> Site {
    let port = upstream.port;
    let proxy = "[[app.site.proxy]]\npath = \"/api/**\"";
    Site::new(&[], &format!("{proxy}\nupstream = \"http://127.0.0.1:{port}\"\n{keys}\n"))
}

#[test]
fn a_response_is_relayed_without_hop_by_hop_fields() {
    in_loop(async {
        let upstream = Upstream::start(|_| {
            ok("X-A: 1\r\nKeep-Alive: timeout=5\r\nX-Sendfile: /etc/passwd\r\n", "hi")
        });
        let site = site(&upstream, "");
        let response = site.get("/api/a?b=1").await;
        assert_eq!((response.status, &response.body[..]), (200, "hi"));
        assert_eq!((response.header("x-a"), response.header("keep-alive")), (Some("1"), None));
        assert_eq!(response.header("x-sendfile"), None);
        assert!(response.header("via").is_some());
        assert!(upstream.last_request().starts_with("GET /api/a?b=1 HTTP/1.1\r\n"));
    });
}

#[test]
fn claims_about_the_client_are_replaced() {
    in_loop(async {
        let upstream = Upstream::with_body("");
        let site = site(&upstream, "");
        let lines = "X-Forwarded-For: 10.0.0.1\r\nForwarded: for=x\r\nProxy: http://evil\r\n\
                     X-Real-IP: 10.0.0.1\r\nX-Secret: a\r\nConnection: X-Secret\r\n";
        let response =
            site.request("GET", "/api/", &lines.replace("Connection: X", "TE: X"), "").await;
        assert_eq!(response.status, 200);
        let request = upstream.last_request().to_ascii_lowercase();
        assert!(request.contains("\r\nx-forwarded-for: 127.0.0.1\r\n"), "{request}");
        assert!(request.contains("\r\nx-forwarded-proto: http\r\n"), "{request}");
        assert!(request.contains("\r\nx-forwarded-host: example.test\r\n"), "{request}");
        assert!(request.contains("\r\nhost: example.test\r\n"), "{request}");
        for absent in ["10.0.0.1", "\r\nforwarded:", "\r\nproxy:", "\r\nconnection: close"] {
            assert!(!request.contains(absent), "{absent} in {request}");
        }
    });
}

#[test]
fn a_received_body_is_sent_with_its_length() {
    in_loop(async {
        let upstream = Upstream::with_body("done");
        let site = site(&upstream, "");
        let response = site.request("POST", "/api/", "", "name=value").await;
        assert_eq!(response.body, "done");
        let request = upstream.last_request();
        assert!(request.ends_with("\r\n\r\nname=value"), "{request}");
        assert!(request.to_ascii_lowercase().contains("\r\ncontent-length: 10\r\n"), "{request}");
    });
}

#[test]
fn a_spooled_body_is_sent_completely() {
    in_loop(async {
        let upstream = Upstream::with_body("done");
        let site = site(&upstream, "[app.site.limits]\nbody_memory = \"4 KiB\"\n");
        let body = "0123456789".repeat(5_000);
        let response = site.request("POST", "/api/", "", &body).await;
        assert_eq!(response.body, "done");
        assert!(upstream.last_request().ends_with(&body));
    });
}

#[test]
fn a_streamed_body_is_relayed_while_it_arrives() {
    in_loop(async {
        let upstream = Upstream::with_body("done");
        let site = site(&upstream, "request_buffering = false");
        let client = site.connect();
        client.send(
            "POST /api/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 6\r\n\r\nabc",
        );
        assert_eq!(client.receive().await, "");
        client.send("def");
        assert!(client.receive_to_end().await.ends_with("\r\n\r\ndone"));
        assert!(upstream.last_request().ends_with("abcdef"));
    });
}

#[test]
fn interim_responses_are_relayed() {
    in_loop(async {
        let upstream = Upstream::start(|_| {
            format!("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n{}", ok("", "page"))
        });
        let site = site(&upstream, "");
        let client = site.connect();
        client.send("GET /api/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let all = client.receive_to_end().await;
        assert!(all.starts_with("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n"), "{all}");
        assert!(all.contains("\r\n\r\nHTTP/1.1 200 OK\r\n") && all.ends_with("page"), "{all}");
    });
}

#[test]
fn a_response_that_ends_early_is_not_taken_for_a_complete_one() {
    in_loop(async {
        let upstream = Upstream::start(|_| {
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n"
                .to_owned()
        });
        let site = site(&upstream, "");
        let response = site.get("/api/").await;
        // If the end arrives with the head, nothing was sent yet.
        let is_incomplete = response.body == "abc(incomplete)";
        assert!(is_incomplete || response.status == 502, "{response:?}");
        assert_eq!(site.refusals("upstream_failed"), 1);
    });
}

#[test]
fn an_unreachable_upstream_is_a_bad_gateway() {
    in_loop(async {
        let upstream = Upstream { port: 1, requests: std::rc::Rc::default() };
        let site = site(&upstream, "");
        assert_eq!(site.get("/api/").await.status, 502);
        assert_eq!(site.refusals("upstream_failed"), 1);
    });
}

#[test]
fn an_invalid_head_of_an_upstream_is_refused() {
    in_loop(async {
        let upstream = Upstream::start(|_| "HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n".to_owned());
        let site = site(&upstream, "");
        assert_eq!(site.get("/api/").await.status, 502);
    });
}

#[test]
fn a_large_response_is_relayed_completely() {
    in_loop(async {
        let upstream = Upstream::start(|_| ok("", &"0123456789abcdef".repeat(50_000)));
        let site = site(&upstream, "");
        let response: Response = site.get("/api/").await;
        assert_eq!(response.body.len(), 800_000);
        assert!(response.body == "0123456789abcdef".repeat(50_000), "the content differs");
    });
}

#[test]
fn a_websocket_is_relayed_after_both_sides_have_switched() {
    in_loop(async {
        let upstream = Upstream::start(|request| {
            assert!(
                request.to_ascii_lowercase().contains("\r\nupgrade: websocket\r\n"),
                "{request}"
            );
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: x\r\n\r\nwelcome"
                .to_owned()
        });
        let site = site(&upstream, "");
        let client = site.connect_to(ListenerContext::plain(Role::Apps));
        client.send(
            "GET /api/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
        let until_ms = outboard_reactor::now_ms() + 10_000;
        let mut all = String::new();
        while !all.ends_with("welcome") {
            assert!(outboard_reactor::now_ms() < until_ms, "{all}");
            all += &client.receive().await;
            outboard_reactor::sleep(1).await;
        }
        assert!(all.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{all}");
        assert!(
            all.contains("Sec-WebSocket-Accept: x\r\n") && all.ends_with("\r\n\r\nwelcome"),
            "{all}"
        );
    });
}

#[test]
fn other_protocols_are_not_relayed() {
    in_loop(async {
        let upstream = Upstream::with_body("plain");
        let site = site(&upstream, "");
        let lines = "Upgrade: h2c\r\n";
        assert_eq!(site.request("GET", "/api/", lines, "").await.body, "plain");
        assert!(!upstream.last_request().to_ascii_lowercase().contains("\r\nupgrade:"));
    });
}

#[test]
fn a_request_ends_when_its_client_goes_away() {
    in_loop(async {
        let upstream = Upstream::start(|_| {
            "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\nstart".to_owned()
        });
        let site = site(&upstream, "");
        let client = site.connect();
        client.send("GET /api/ HTTP/1.1\r\nHost: a\r\n\r\n");
        wait_for("request", || (!upstream.requests.borrow().is_empty()).then_some(())).await;
        drop(client);
        let server = site.gateway.server.clone();
        wait_for("end of the connection", || (server.shared.open_connections() == 0).then_some(()))
            .await;
    });
}

#[test]
fn fields_that_the_connection_header_names_end_at_the_gateway() {
    in_loop(async {
        let upstream = Upstream::start(|_| ok("X-Theirs: 1\r\nConnection: X-Theirs\r\n", "x"));
        let site = site(&upstream, "");
        let client = site.connect();
        client
            .send("GET /api/ HTTP/1.1\r\nHost: a\r\nX-Own: 1\r\nConnection: close, X-Own\r\n\r\n");
        let response = crate::testing::response(&client.receive_to_end().await);
        assert_eq!((response.status, response.header("x-theirs")), (200, None));
        assert!(!upstream.last_request().contains("X-Own"), "{}", upstream.last_request());
    });
}

#[test]
fn a_chunked_body_is_sent_whole_and_its_trailers_are_not() {
    in_loop(async {
        let upstream = Upstream::with_body("done");
        let site = site(&upstream, "");
        let client = site.connect();
        client.send("POST /api/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
        client.send("Transfer-Encoding: chunked\r\n\r\n4\r\nname\r\n6\r\n=value\r\n");
        client.send("0\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n");
        let response = crate::testing::response(&client.receive_to_end().await);
        assert_eq!(response.body, "done");
        let request = upstream.last_request();
        assert!(request.contains("name") && request.contains("=value"), "{request}");
        assert!(!request.contains("10.0.0.1"), "{request}");
    });
}

#[test]
fn an_invalid_chunk_never_completes_a_request_upstream() {
    in_loop(async {
        let upstream = Upstream::with_body("done");
        let site = site(&upstream, "");
        let client = site.connect();
        client.send("POST /api/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send("4\r\nname\r\nnot a size\r\n\r\n0\r\n\r\n");
        let response = crate::testing::response(&client.receive_to_end().await);
        assert_eq!(response.status, 400);
        let completed = upstream.requests.borrow().iter().any(|one| one.ends_with("0\r\n\r\n"));
        assert!(!completed, "{:?}", upstream.requests.borrow());
    });
}
