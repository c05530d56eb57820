//! Paths and locations that rewrite rules produce.
//!
//! Called by the gateway for rewrites and redirects. Invariant: what is encoded is a valid path (RFC 3986, 3.3).

/// Merges slashes as in the path of a request: a rule can produce several in a row, which patterns
/// do not expect.
pub fn merge_slashes(path: &mut Vec<u8>) {
    path.dedup_by(|next, before| (*next, *before) == (b'/', b'/'));
}

/// A location with a query, if there is one.
pub fn with_query(mut location: Vec<u8>, query: Option<&[u8]>) -> Vec<u8> {
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    location
}

/// Percent-encodes a decoded path.
pub fn encode_path(path: &[u8]) -> Vec<u8> {
    let mut location = Vec::with_capacity(path.len() + 16);
    for &byte in path {
        match is_path_byte(byte) {
            true => location.push(byte),
            false => write_percent(&mut location, byte),
        }
    }
    location
}

/// Whether a path can contain the byte as it is.
pub(crate) fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte)
}

/// Appends the byte percent-encoded.
pub(crate) fn write_percent(path: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    path.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_in_a_row_are_merged() {
        let mut path = b"//a///b/".to_vec();
        merge_slashes(&mut path);
        assert_eq!(path, b"/a/b/");
    }

    #[test]
    fn an_empty_query_leaves_no_question_mark() {
        assert_eq!(with_query(b"/a".to_vec(), Some(b"")), b"/a");
        assert_eq!(with_query(b"/a".to_vec(), None), b"/a");
        assert_eq!(with_query(b"/a".to_vec(), Some(b"b=c")), b"/a?b=c");
    }

    #[test]
    fn bytes_that_a_path_cannot_contain_are_encoded() {
        assert_eq!(encode_path("/a b/é?%\r\n".as_bytes()), b"/a%20b/%C3%A9%3F%25%0D%0A");
        assert_eq!(encode_path(b"/a-._~!$&'()*+,;=:@9"), b"/a-._~!$&'()*+,;=:@9");
    }
}
