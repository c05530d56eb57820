//! Browsers, and pages of other sites, at the dashboard's port.

use super::*;
use crate::tests::admin_server::AdminServer;
use std::net::SocketAddr;

/// The dashboard of a server, with the token of its URL.
fn dashboard(server: &AdminServer) -> (SocketAddr, String) {
    let keys = Keys::new().unwrap();
    let token = keys.token().to_owned();
    let service = Arc::new(Service::new(server.socket(), keys));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || service.accept(&listener));
    (address, token)
}

/// Everything that is sent in response to this, until the connection is closed.
fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// The status and the body of one response.
fn request(address: SocketAddr, line: &str, fields: &str) -> (u16, String) {
    let text = format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{fields}\r\n");
    let reply = exchange(address, &text);
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[test]
fn a_browser_exchanges_its_token_for_a_key_once() {
    let server = AdminServer::start("token", |_| (200, b"{\"now_ms\":1}".to_vec()));
    let (address, token) = dashboard(&server);
    assert_eq!(request(address, "GET /dashboard/state", "").0, 401);
    let bearer = |text: &str| format!("Authorization: Bearer {text}\r\n");
    assert_eq!(request(address, "POST /dashboard/session", &bearer("wrong")).0, 401);
    let (status, body) = request(address, "POST /dashboard/session", &bearer(&token));
    assert_eq!(status, 200);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let key = bearer(body["key"].as_str().unwrap());
    assert_eq!(request(address, "POST /dashboard/session", &bearer(&token)).0, 401, "only once");
    assert_eq!(request(address, "GET /dashboard/state", &bearer(&token)).0, 401);
    let state = request(address, "GET /dashboard/state?since_ms=5&app=a%26b", &key);
    assert_eq!(state, (200, "{\"now_ms\":1}".to_owned()));
    assert_eq!(server.lines(), ["GET /dashboard/state?app=a%26b&since_ms=5"]);
    assert_eq!(request(address, "GET /dashboard/state?since_ms=x", &key).0, 400);
    assert!(server.lines().is_empty());
}

#[test]
fn nothing_else_reaches_the_admin_socket() {
    let server = AdminServer::replying("paths", 200, "{}");
    let (address, token) = dashboard(&server);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let (_, body) = request(address, "POST /dashboard/session", &bearer);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let key = format!("Authorization: Bearer {}\r\n", body["key"].as_str().unwrap());
    for line in [
        "POST /reload",
        "GET /status",
        "GET /config",
        "POST /dashboard/state",
        "DELETE /dashboard/state",
        "GET /dashboard/../status",
        "GET /dashboard/profile",
        "GET /dashboard/session",
    ] {
        assert_eq!(request(address, line, &key).0, 404, "{line}");
        assert_eq!(request(address, line, "").0, 401, "{line} without a key");
    }
    for seconds in ["", "?seconds=0", "?seconds=31", "?seconds=x", "?seconds=-1"] {
        let line = format!("POST /dashboard/profile{seconds}");
        assert_eq!(request(address, &line, &key).0, 400, "{line}");
    }
    assert!(server.lines().is_empty());
}

#[test]
fn pages_of_other_sites_are_refused() {
    let server = AdminServer::replying("sites", 200, "page");
    let (address, _) = dashboard(&server);
    for fields in [
        "Origin: http://evil.test\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        for line in ["POST /dashboard/session", "GET /dashboard/state", "GET /dashboard/chart.js"] {
            let (status, body) = request(address, line, fields);
            assert_eq!(status, 403, "{line} {fields}");
            assert!(body.contains("another site"), "{body}");
        }
    }
    // A name of an attacker that resolves to this machine.
    let rebound = "GET / HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n";
    assert!(exchange(address, rebound).starts_with("HTTP/1.1 403 "));
    assert!(server.lines().is_empty());
    assert_eq!(request(address, "GET /", "").0, 200);
    assert_eq!(
        request(address, "GET /dashboard/chart.js", "Sec-Fetch-Site: same-origin\r\n").0,
        200
    );
    assert_eq!(server.lines(), ["GET /", "GET /dashboard/chart.js"]);
}

#[test]
fn responses_forbid_what_the_page_does_not_need() {
    let server = AdminServer::replying("fields", 200, "page");
    let (address, _) = dashboard(&server);
    for line in ["GET /", "GET /dashboard/state", "POST /none"] {
        let text = format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let reply = exchange(address, &text);
        for (name, value) in HEADERS {
            assert!(reply.contains(&format!("\r\n{name}: {value}\r\n")), "{line}: {name}");
        }
        assert!(reply.contains("\r\nConnection: close\r\n"), "{reply}");
    }
}

#[test]
fn a_connection_has_many_requests_and_a_head_has_no_body() {
    let server = AdminServer::replying("keep-alive", 200, "page");
    let (address, _) = dashboard(&server);
    let host = format!("Host: {address}\r\n");
    let text = format!(
        "HEAD / HTTP/1.1\r\n{host}\r\nGET / HTTP/1.1\r\n{host}\r\nGET / HTTP/1.1\r\n{host}Connection: close\r\n\r\n"
    );
    let reply = exchange(address, &text);
    assert_eq!(reply.matches("HTTP/1.1 200 ").count(), 3, "{reply}");
    assert_eq!(reply.matches("\r\n\r\npage").count(), 2, "{reply}");
}

#[test]
fn a_request_with_a_body_ends_the_connection() {
    let server = AdminServer::replying("body", 200, "page");
    let (address, _) = dashboard(&server);
    for framing in ["Content-Length: 3", "Transfer-Encoding: chunked"] {
        let text =
            format!("POST /dashboard/session HTTP/1.1\r\nHost: {address}\r\n{framing}\r\n\r\n");
        let reply = exchange(address, &text);
        assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
        assert!(reply.contains("\r\nConnection: close\r\n"), "{reply}");
    }
}

#[test]
fn bytes_that_are_no_request_get_no_response() {
    let server = AdminServer::replying("garbage", 200, "page");
    let (address, _) = dashboard(&server);
    assert_eq!(exchange(address, "SSH-2.0-OpenSSH\r\n\r\n"), "");
    assert_eq!(exchange(address, "GET / HTTP/1.1\r\nHost a\r\n\r\n"), "");
}

#[test]
fn a_server_that_is_gone_is_an_error_of_the_page() {
    let server = AdminServer::replying("gone", 200, "page");
    let (address, _) = dashboard(&server);
    std::fs::remove_file(server.socket()).unwrap();
    let (status, body) = request(address, "GET /", "");
    assert_eq!(status, 502);
    assert!(body.contains("no server responds at"), "{body}");
    let server = AdminServer::replying("refuses", 503, r#"{"error":"stopping"}"#);
    let (address, _) = dashboard(&server);
    assert_eq!(request(address, "GET /", ""), (503, r#"{"error":"stopping"}"#.to_owned()));
}
