//! Abuse of HTTP/3 (RFC 9114): what a client sends on the streams of a connection that is in order.

mod bodies;
pub(crate) mod client;
mod resets;
mod violations;

use super::*;

// RFC 9114 7.2.
pub(crate) const DATA: u64 = 0;
const HEADERS: u64 = 1;
const SETTINGS: u64 = 4;
// RFC 9114 8.1.
const EXCESSIVE_LOAD: u64 = 0x107;

/// RFC 9000 16.
fn varint(number: u64) -> Vec<u8> {
    match number {
        0..0x40 => vec![number as u8],
        0x40..0x4000 => (number as u16 | 0x4000).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (number as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (number | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [&varint(kind)[..], &varint(payload.len() as u64), payload].concat()
}

/// The start of a control stream (RFC 9114 6.2.1).
fn control() -> Vec<u8> {
    [vec![0], frame(SETTINGS, &[])].concat()
}

/// RFC 9204 Appendix A and 4.5: a method, https; an authority and a path that are written out.
fn head(method: u8, path: &str) -> Vec<u8> {
    let path = [&[0x51, path.len() as u8][..], path.as_bytes()].concat();
    [&[0, 0, method, 0xd7, 0x50, 4][..], b"site", &path].concat()
}

pub(crate) const GET: u8 = 0xd1;
pub(crate) const POST: u8 = 0xd4;

/// The HEADERS frame of a request.
pub(crate) fn request(method: u8, path: &str) -> Vec<u8> {
    frame(HEADERS, &head(method, path))
}

/// A request with a body of so many bytes, a name of Appendix A.
fn post_of(length: &str) -> Vec<u8> {
    let length = [&[0x54, length.len() as u8][..], length.as_bytes()].concat();
    frame(HEADERS, &[head(POST, "/hello.php"), length].concat())
}
