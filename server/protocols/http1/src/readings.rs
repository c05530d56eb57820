//! The ways in which other programs may read an encoded path: they disagree about encoded and repeated slashes,
//! `\`, parameters, dot segments and how often to decode.
//!
//! Called by the gateway where a program behind it reads the path of a request by itself: an upstream, a script, a
//! service that decides about access. Invariant: the result of [`path_for_upstream`] has no dot segment in any
//! reading, so that it leads nowhere but to what [`other_readings`] lists.

use crate::location::{encode_path, is_path_byte, merge_slashes, write_percent};
use crate::path::normalize_path;
use std::borrow::Cow;

/// Encoded slashes separate segments, and slashes in a row are one, as in
/// [`normalize_path`](crate::normalize_path).
const MERGED: u8 = 1;
/// `\` is a slash (WHATWG URL, 4.4).
const BACKSLASH: u8 = 2;
/// From `;` on a segment is parameters (RFC 3986 3.3), which servlet containers remove.
const PARAMETERS: u8 = 4;
/// It is decoded twice.
const TWICE: u8 = 8;

/// The decoded readings of `raw`, a valid path, in addition to the normalized one; dot segments remain in them.
/// An ordinary path has none.
pub fn other_readings(raw: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let possible = differences(raw);
    let count = if is_plain(raw) { 0 } else { possible + 1 };
    (0..count).filter(move |flags| flags & !possible == 0).map(|flags| read(raw, flags))
}

/// Whether programs disagree where `raw` leads to: it has a dot segment in one of the readings, or a `\`.
pub fn is_ambiguous_path(raw: &[u8]) -> bool {
    raw.contains(&b'\\') || other_readings(raw).any(|path| has_dot_segment(&path))
}

/// The path of a request in the form in which an upstream may get it: without dot segments, and valid (RFC 3986
/// 3.3). `None` if programs disagree which path it is, or if it is invalid.
pub fn path_for_upstream(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    if is_ambiguous_path(raw) {
        let mut path = Vec::new();
        let agree = differences(raw) == MERGED && read(raw, MERGED) == read(raw, 0);
        normalize_path(raw, &mut path).ok().filter(|()| agree)?;
        return Some(Cow::Owned(encode_path(&path)));
    }
    if raw.iter().all(|&byte| is_path_byte(byte) || byte == b'%') {
        return Some(Cow::Borrowed(raw));
    }
    let mut path = Vec::with_capacity(raw.len() + 16);
    for &byte in raw {
        match is_path_byte(byte) || byte == b'%' {
            true => path.push(byte),
            false => write_percent(&mut path, byte),
        }
    }
    Some(Cow::Owned(path))
}

/// Whether all programs read the path in the same way: it is neither encoded nor has parameters, an empty segment
/// or one that begins with a dot.
fn is_plain(raw: &[u8]) -> bool {
    let is_special = |&byte: &u8| matches!(byte, b'%' | b'\\' | b';');
    let starts_segment = |pair: &[u8]| matches!(pair, b"//" | b"/.");
    !raw.iter().any(is_special) && !raw.windows(2).any(starts_segment)
}

/// The flags of the readings that can differ.
fn differences(raw: &[u8]) -> u8 {
    let has = |byte: u8, encoded: &[u8; 3]| {
        raw.contains(&byte) || raw.windows(3).any(|found| found.eq_ignore_ascii_case(encoded))
    };
    if has(b'\0', b"%25") {
        return MERGED | BACKSLASH | PARAMETERS | TWICE;
    }
    let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
    MERGED | flag(BACKSLASH, has(b'\\', b"%5c")) | flag(PARAMETERS, has(b';', b"%3b"))
}

fn read(raw: &[u8], flags: u8) -> Vec<u8> {
    let has = |flag: u8| flags & flag != 0;
    let mut path = decode(raw, has(MERGED));
    if has(TWICE) {
        path = decode(&path, has(MERGED));
    }
    if has(BACKSLASH) {
        path.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
    }
    if has(PARAMETERS) {
        let mut is_parameter = false;
        path.retain(|&byte| {
            is_parameter = byte == b';' || (is_parameter && byte != b'/');
            !is_parameter
        });
    }
    if has(MERGED) {
        merge_slashes(&mut path);
    }
    path
}

/// Decodes what is encoded, slashes only on demand.
fn decode(raw: &[u8], decodes_slashes: bool) -> Vec<u8> {
    let mut path = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        let encoded = digit(0).zip(digit(1)).filter(|_| byte == b'%');
        let decoded = encoded.map(|(high, low)| (high << 4 | low) as u8);
        let decoded = decoded.filter(|&decoded| decodes_slashes || decoded != b'/');
        path.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    path
}

fn has_dot_segment(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|segment| matches!(segment, b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn for_upstream(raw: &str) -> Option<String> {
        let path = path_for_upstream(raw.as_bytes())?;
        Some(String::from_utf8(path.into_owned()).unwrap())
    }

    #[test]
    fn what_programs_agree_about_is_sent() {
        for raw in [
            "/",
            "/a/b",
            "/a//b/",
            "/a%2Fb",
            "/a;b=c/d",
            "/a%5Cb",
            "/.well-known/a..b",
            "/a%20b%25",
        ] {
            assert_eq!(for_upstream(raw).as_deref(), Some(raw), "{raw}");
        }
        for (raw, sent) in [
            ("/a/../b", "/b"),
            ("/a/./b/%2e%2E/c%3Fd", "/a/c%3Fd"),
            ("/a/b/..", "/a/"),
            ("/a|b[]\"<\u{e9}", "/a%7Cb%5B%5D%22%3C%C3%A9"),
        ] {
            assert_eq!(for_upstream(raw).as_deref(), Some(sent), "{raw}");
        }
    }

    #[test]
    fn dot_segments_that_programs_read_differently_are_ambiguous() {
        for raw in [
            "/a\\b",
            "/a//../b",
            "/a//%2e%2e/b",
            "/a/x%2f../b",
            "/a/..%2Fb",
            "/a/..;/b",
            "/a/..;x=1/b",
            "/a/.%2e%3Bx/b",
            "/a/x;y/../b",
            "/a/x%5c..%5cb",
            "/a/%252e%252e/b",
            "/a/x%252f..%252fb",
            "/a/b//..",
        ] {
            assert_eq!(for_upstream(raw), None, "{raw}");
        }
    }

    #[test]
    fn each_difference_is_a_reading() {
        for (raw, reading) in [
            ("/a/../b", "/a/../b"),
            ("/a//b", "/a//b"),
            ("/a%2fb", "/a%2fb"),
            ("/a;x/b", "/a/b"),
            ("/a%3bx/b", "/a/b"),
            ("/a%5Cb", "/a/b"),
            ("/%2561", "/a"),
            ("/a;x%2fb", "/a/b"),
            ("/a%253bx%252f%255cb", "/a/b"),
        ] {
            let mut readings = other_readings(raw.as_bytes());
            assert!(readings.any(|found| found == reading.as_bytes()), "{raw}");
        }
        assert_eq!(other_readings(b"/a-b/c.php/d=e").count(), 0);
    }
}
