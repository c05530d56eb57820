use super::*;

fn response_bytes(output: &[&[u8]], padding: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    record(STDERR, b"PHP message", &mut bytes);
    for piece in output {
        let at = bytes.len();
        record(STDOUT, piece, &mut bytes);
        bytes[at + 6] = padding;
        bytes.extend(std::iter::repeat_n(0, usize::from(padding)));
    }
    record(END_REQUEST, &[0; 8], &mut bytes);
    bytes
}

fn read(bytes: &[u8], size: usize) -> Result<(bool, Response), Malformed> {
    let mut reader = Reader::default();
    let mut response = Response { wants_body: true, wants_fields: true, ..Response::default() };
    reader.begin();
    let mut whole = false;
    for piece in bytes.chunks(size) {
        whole = reader.feed(piece, &mut response)?;
    }
    Ok((whole, response))
}

#[test]
fn cutting_a_response_changes_nothing() {
    let head = b"Status: 404 Not Found\r\nSet-Cookie: a=b\r\n\r\nhel".as_slice();
    for padding in [0, 5] {
        let bytes = response_bytes(&[head, b"lo", b"", b"!"], padding);
        for size in 1..=bytes.len() {
            let (whole, response) = read(&bytes, size).expect("it is well formed");
            assert!(whole, "{size}");
            assert_eq!((response.status, response.body_bytes), (404, 6));
            assert_eq!(
                (response.body.as_slice(), response.cookies.len()),
                (b"hello!".as_slice(), 1)
            );
        }
    }
}

#[test]
fn without_a_status_it_is_200_and_lines_may_end_with_lf() {
    let bytes = response_bytes(&[b"Content-type: text/html\n", b"\nx"], 0);
    let (whole, response) = read(&bytes, 3).expect("it is well formed");
    assert!(whole);
    assert_eq!((response.status, response.body_bytes), (200, 1));
}

#[test]
fn an_invalid_response_is_malformed() {
    assert!(read(&response_bytes(&[b"no end of the head"], 0), 9).is_err());
    assert!(read(b"HTTP/1.1 400 Bad Request\r\n\r\n", 100).is_err());
    let mut more = response_bytes(&[b"a: b\r\n\r\n"], 0);
    more.push(1);
    assert!(read(&more, 1000).is_err());
}

#[test]
fn lengths_from_128_take_four_bytes() {
    let mut out = Vec::new();
    [127, 128].iter().for_each(|&length| push_length(length, &mut out));
    assert_eq!(out, [127, 0x80, 0, 0, 128]);
}
