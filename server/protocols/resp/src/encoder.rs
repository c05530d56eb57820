//! Encoding of commands: arrays of bulk strings.
//!
//! Called by every client. Nothing here allocates beyond the growth of the buffer.

/// Appends a command with its arguments.
pub fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    array(out, words.len());
    words.iter().for_each(|word| bulk(out, word));
}

/// Appends the head of an array; its `count` values have to follow.
pub fn array(out: &mut Vec<u8>, count: usize) {
    head(out, b'*', count);
}

/// Appends a bulk string.
pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    // `$`, at most 20 digits and two line ends.
    out.reserve(bytes.len() + 25);
    head(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn head(out: &mut Vec<u8>, kind: u8, mut number: usize) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.push(kind);
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut out = Vec::new();
        command(&mut out, &[b"SET", b"a key\r\n", b"", &[b'x'; 10]]);
        assert_eq!(out, b"*4\r\n$3\r\nSET\r\n$7\r\na key\r\n\r\n$0\r\n\r\n$10\r\nxxxxxxxxxx\r\n");
    }

    #[test]
    fn every_length_is_written_in_decimal() {
        for number in [0, 9, 10, 65_536, usize::MAX] {
            let mut out = Vec::new();
            array(&mut out, number);
            assert_eq!(out, format!("*{number}\r\n").as_bytes());
        }
    }
}
