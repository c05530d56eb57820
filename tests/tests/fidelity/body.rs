//! `php://input` and bodies large and small, in both directions.

use crate::pair;
use outboard_e2e::{Connection, Multipart, Request};

const LARGE: usize = 20 << 20;

#[test]
fn the_raw_body_can_be_read_again_and_again() {
    let request = Request::post("/body.php", "application/json", "{\"a\": [1, 2]}");
    pair().same(&request).expect(200).holding("{\"a\": [1, 2]}");
    let form = "application/x-www-form-urlencoded";
    pair().same(&Request::post("/body.php", form, "a=1&b=2")).expect(200).holding("a=1&b=2");
}

#[test]
fn the_raw_body_of_any_method_can_be_read() {
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "GET"] {
        let request = Request::new(method, "/body.php").body("raw bytes");
        pair().same(&request).expect(200).holding("raw bytes");
    }
}

#[test]
fn after_multipart_the_raw_body_reads_as_under_php_fpm() {
    let parts = Multipart::new().field("a", "1").file("f", "f.txt", "text/plain", b"content");
    pair().same(&Request::upload("/body.php", parts)).expect(200).holding("files 1");
}

#[test]
fn a_body_of_20_mb_arrives_whole() {
    let body: Vec<u8> = (0..LARGE).map(|index| (index / 251 % 256) as u8).collect();
    let request = Request::new("PUT", "/body_in_pieces.php").body(body);
    pair().same(&request).expect(200).holding(&LARGE.to_string());
}

#[test]
fn an_answer_of_20_mb_arrives_whole() {
    assert_eq!(pair().same(&Request::get("/big.php")).expect(200).body.len(), LARGE);
    assert_eq!(pair().same(&Request::get("/big_single.php")).expect(200).body.len(), LARGE);
}

#[test]
fn bytes_of_every_value_pass_unchanged() {
    let response = pair().same(&Request::get("/binary.php")).expect(200);
    assert_eq!(response.body, (0..=255).collect::<Vec<u8>>());
    let body: Vec<u8> = (0..=255).collect();
    pair().same(&Request::new("POST", "/body.php").body(body)).expect(200);
}

#[test]
fn a_chunked_request_body_arrives_whole_and_with_its_length() {
    let chunked = b"POST /body.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
                    Content-Type: text/plain\r\n\r\n5\r\nhello\r\n7;ext=1\r\n chunks\r\n0\r\nX-Sum: 12\r\n\r\n";
    let answers: Vec<String> = [&pair().reference, &pair().subject]
        .into_iter()
        .map(|site| {
            let mut connection = Connection::open(site.address());
            connection.send(chunked).unwrap();
            connection.response().unwrap().expect(200).text()
        })
        .collect();
    assert!(answers[0].starts_with("POST 12 "), "{}", answers[0]);
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn a_client_that_waits_for_100_continue_gets_it() {
    for site in [&pair().reference, &pair().subject] {
        let mut connection = Connection::open(site.address());
        let head = "POST /body.php HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
        connection.send(head.as_bytes()).unwrap();
        assert_eq!(connection.head().unwrap().status, 100, "{}", site.name());
        connection.send(b"hello").unwrap();
        connection.response().unwrap().expect(200).holding("POST 5 ");
    }
}
