//! Frames of requests for the tests of this directory.

use outboard_ring::request::{FIELD_COUNT, Field, Fixed, RequestParts, encode};

/// A GET request for `/index.php` with these headers and this query.
pub(super) fn frame(headers: &[(&str, &str)], query: &str) -> Vec<u8> {
    let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
    let uri = format!("/page?{query}");
    for (field, value) in [
        (Field::Method, "GET"),
        (Field::Uri, &uri),
        (Field::Query, query),
        (Field::ScriptFilename, "/www/index.php"),
        (Field::ScriptName, "/index.php"),
        (Field::RemoteAddr, "192.0.2.7"),
        (Field::ServerName, "a.test"),
        (Field::Scheme, "http"),
    ] {
        fields[field as usize] = value.as_bytes();
    }
    let fixed =
        Fixed { received_us: 7, remote_port: 40_000, server_port: 8080, ..Fixed::default() };
    let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let mut frame = Vec::new();
    encode(RequestParts { fixed, fields, headers, params: [].into_iter() }, &mut frame);
    frame
}
