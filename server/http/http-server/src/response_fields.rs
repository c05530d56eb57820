//! [`ResponseFields`]: fields of a response that the gateway decides, whatever responds.
//!
//! Set before a request is handled, and written with the head of its response, be that of a file, of PHP, of
//! an upstream, of the cache or of a refusal.

use crate::header_block::HeaderBlock;

/// See the module.
#[derive(Debug, Default)]
pub struct ResponseFields {
    /// The lines.
    pub lines: HeaderBlock,
    /// Fields whose names begin so are removed from the response of the handler.
    pub replaced: &'static [u8],
}

/// Appends the lines of a handler, and these in the place of some.
pub(crate) fn write(
    fields: Option<Box<ResponseFields>>,
    out: &mut Vec<u8>,
    write_lines: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    write_lines(out);
    let Some(fields) = fields else { return };
    let is_replaced = |line: &[u8]| {
        let name = line.get(..fields.replaced.len());
        name.is_some_and(|name| name.eq_ignore_ascii_case(fields.replaced))
    };
    let lines = out[start..].split_inclusive(|&byte| byte == b'\n');
    let others = lines.filter(|line| !is_replaced(line)).collect::<Vec<_>>().concat();
    out.truncate(start);
    out.extend_from_slice(&others);
    out.extend_from_slice(&fields.lines.bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_handler_are_replaced_by_their_names() {
        let lines = HeaderBlock::constant(&[("Access-Control-Allow-Origin", "https://a.test")]);
        let fields = Some(Box::new(ResponseFields { lines, replaced: b"access-control-" }));
        let own = b"X: 1\r\naccess-CONTROL-allow-origin: *\r\nAccess: 2\r\n";
        let mut out = b"Access-Control-Status: line\r\n".to_vec();
        write(fields, &mut out, |out| out.extend_from_slice(own));
        let expected = b"Access-Control-Status: line\r\nX: 1\r\nAccess: 2\r\n\
            Access-Control-Allow-Origin: https://a.test\r\n";
        assert_eq!(out, expected);
    }
}
