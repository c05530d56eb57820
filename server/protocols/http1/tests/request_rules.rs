//! Accepted and refused request heads, rule by rule. Each row names its section.

use outboard_http1::{
    BodyFraming, HeadError, HeadLimits, HeadStatus, Method, RequestHead, Version,
};

const LIMITS: HeadLimits =
    HeadLimits { request_line_bytes: 200, header_bytes: 400, header_count: 8 };

fn parse(bytes: &[u8]) -> Result<RequestHead, HeadError> {
    let mut head = RequestHead::new();
    match head.parse(bytes, &LIMITS)? {
        HeadStatus::Complete { head_len } => assert_eq!(head_len, bytes.len()),
        HeadStatus::Partial => panic!("partial: {}", bytes.escape_ascii()),
    }
    Ok(head)
}

fn refused(bytes: &[u8], error: HeadError, section: &str) {
    let result = parse(bytes).map(|_| ());
    assert_eq!(result, Err(error), "RFC 9112 {section}: {}", bytes.escape_ascii());
}

/// A head whose request line is `line`.
fn with_line(line: &str) -> Vec<u8> {
    format!("{line}\r\nHost: a.test\r\n\r\n").into_bytes()
}

/// A POST with `fields`, each with its CRLF.
fn with_fields(fields: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n").into_bytes()
}

#[test]
fn the_request_line_has_three_words() {
    use HeadError::*;
    for (line, error, section) in [
        ("GET /", MalformedRequestLine, "3 (HTTP/0.9)"),
        ("GET", MalformedRequestLine, "3"),
        ("GET  / HTTP/1.1", MalformedRequestLine, "3 (two spaces)"),
        ("GET /  HTTP/1.1", MalformedVersion, "3 (two spaces)"),
        ("GET / HTTP/1.1 ", MalformedVersion, "3 (space at the end)"),
        ("GET /a b HTTP/1.1", MalformedVersion, "3.2 (space in the target)"),
        ("GET\t/ HTTP/1.1", InvalidMethod, "3 (HTAB for SP)"),
        (" GET / HTTP/1.1", InvalidMethod, "2.2"),
        ("G(T / HTTP/1.1", InvalidMethod, "3.1"),
        ("GET: / HTTP/1.1", InvalidMethod, "3.1"),
        ("G\u{e4}T / HTTP/1.1", InvalidMethod, "3.1"),
        ("\0GET / HTTP/1.1", InvalidMethod, "3.1"),
        ("\x16\x03\x01", InvalidMethod, "3.1 (TLS)"),
        ("GET / http/1.1", MalformedVersion, "2.3 (case)"),
        ("GET / HTTP/11", MalformedVersion, "2.3"),
        ("GET / HTTP/1", MalformedVersion, "2.3"),
        ("GET / HTTP/1.", MalformedVersion, "2.3"),
        ("GET / HTTP/1.10", MalformedVersion, "2.3"),
        ("GET / HTTP/+1.1", MalformedVersion, "2.3"),
        ("GET / HTPT/1.1", MalformedVersion, "2.3"),
        ("GET / HTTP/2.0", UnsupportedVersion, "2.3"),
        ("GET / HTTP/0.9", UnsupportedVersion, "2.3"),
        ("PRI * HTTP/2.0", UnsupportedVersion, "2.3 (HTTP/2 preface)"),
    ] {
        refused(&with_line(line), error, section);
    }
}

#[test]
fn methods_are_case_sensitive_tokens() {
    for (name, kind) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("DELETE", Method::Delete),
        ("OPTIONS", Method::Options),
        ("PATCH", Method::Patch),
        ("TRACE", Method::Trace),
        ("get", Method::Other),
        ("PROPFIND", Method::Other),
        ("M-SEARCH!#$%&'*+.^_`|~", Method::Other),
    ] {
        let bytes = with_line(&format!("{name} / HTTP/1.1"));
        let head = parse(&bytes).unwrap();
        assert_eq!((head.method(&bytes), head.method_kind()), (name.as_bytes(), kind));
    }
}

#[test]
fn versions_of_http_1_are_read_as_the_nearest_known_one() {
    for (text, version) in [
        ("HTTP/1.0", Version::Http10),
        ("HTTP/1.1", Version::Http11),
        ("HTTP/1.2", Version::Http11),
        ("HTTP/1.9", Version::Http11),
    ] {
        let head = parse(&with_line(&format!("GET / {text}"))).unwrap();
        assert_eq!(head.version(), version, "RFC 9110 2.5: {text}");
    }
}

#[test]
fn the_target_is_split_into_its_parts() {
    for (line, path, query, host) in [
        ("GET / HTTP/1.1", "/", None, "a.test"),
        ("GET /a/b?c=d HTTP/1.1", "/a/b", Some("c=d"), "a.test"),
        ("GET /a? HTTP/1.1", "/a", Some(""), "a.test"),
        ("GET /?a?b HTTP/1.1", "/", Some("a?b"), "a.test"),
        ("GET //x/y HTTP/1.1", "//x/y", None, "a.test"),
        ("GET /a:b@c HTTP/1.1", "/a:b@c", None, "a.test"),
        ("GET /{a}|\\^`\"<> HTTP/1.1", "/{a}|\\^`\"<>", None, "a.test"),
        ("OPTIONS * HTTP/1.1", "*", None, "a.test"),
        ("OPTIONS /a HTTP/1.1", "/a", None, "a.test"),
        ("GET http://b.test HTTP/1.1", "/", None, "b.test"),
        ("GET HTTPS://b.test:81/ HTTP/1.1", "/", None, "b.test:81"),
        ("GET http://b.test?q HTTP/1.1", "/", Some("q"), "b.test"),
        ("GET http://[::1]:8/p?q=/ HTTP/1.1", "/p", Some("q=/"), "[::1]:8"),
        ("OPTIONS http://b.test/ HTTP/1.1", "/", None, "b.test"),
        ("CONNECT b.test:443 HTTP/1.1", "", None, "b.test:443"),
        ("CONNECT [::1]:443 HTTP/1.1", "", None, "[::1]:443"),
    ] {
        let bytes = with_line(line);
        let head = parse(&bytes).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(head.target(&bytes), line.split(' ').nth(1).unwrap().as_bytes());
        let parts = (path.as_bytes(), query.map(str::as_bytes));
        assert_eq!(head.path_and_query(&bytes), parts, "{line}");
        assert_eq!(head.host(&bytes), Some(host.as_bytes()), "RFC 9112 3.2.2: {line}");
    }
}

/// curl and old clients send it; nginx and Apache accept it.
#[test]
fn a_target_may_have_bytes_that_are_not_ascii() {
    for target in [&b"/x?q=\xc3\xa9"[..], b"/\xc3\xa9", b"/?\xff\x80", b"http://a.test/\xe9?\xe9"] {
        let bytes = [b"GET ", target, b" HTTP/1.1\r\nHost: a.test\r\n\r\n"].concat();
        let head = parse(&bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(head.target(&bytes), target);
    }
    refused(
        &with_line("GET http://\u{e4}.test/ HTTP/1.1"),
        HeadError::InvalidAbsoluteForm,
        "3.2.2",
    );
}

#[test]
fn an_absolute_target_has_an_origin_form_and_an_authority() {
    for (line, form, authority) in [
        ("GET /a?b=http://c/ HTTP/1.1", "/a?b=http://c/", None),
        ("GET http://b.test HTTP/1.1", "/", Some("b.test")),
        ("GET http://b.test?q HTTP/1.1", "/?q", Some("b.test")),
        ("GET http://b.test:81/p?q=/ HTTP/1.1", "/p?q=/", Some("b.test:81")),
        ("OPTIONS * HTTP/1.1", "*", None),
        ("CONNECT b.test:443 HTTP/1.1", "b.test:443", Some("b.test:443")),
    ] {
        let bytes = with_line(line);
        let head = parse(&bytes).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(*head.origin_form(&bytes), *form.as_bytes(), "{line}");
        assert_eq!(head.target_authority(&bytes), authority.map(str::as_bytes), "{line}");
    }
}

#[test]
fn a_target_has_the_form_that_its_method_allows() {
    use HeadError::*;
    for (line, error, section) in [
        ("GET * HTTP/1.1", AsteriskFormNotAllowed, "3.2.4"),
        ("OPTIONS *a HTTP/1.1", InvalidTarget, "3.2.4"),
        ("GET a HTTP/1.1", InvalidTarget, "3.2"),
        ("GET ?a HTTP/1.1", InvalidTarget, "3.2"),
        ("GET a.test:80 HTTP/1.1", InvalidTarget, "3.2.3"),
        ("GET http:/a HTTP/1.1", InvalidTarget, "3.2.2"),
        ("GET ://a/ HTTP/1.1", InvalidAbsoluteForm, "3.2.2"),
        ("GET ftp://a/ HTTP/1.1", InvalidAbsoluteForm, "3.2.2"),
        ("GET http:///a HTTP/1.1", InvalidAbsoluteForm, "3.2.2 (no host)"),
        ("GET http://u@a/ HTTP/1.1", InvalidAbsoluteForm, "3.2.2 (userinfo)"),
        ("GET http://a:b/ HTTP/1.1", InvalidAbsoluteForm, "3.2.2 (port)"),
        ("GET http://a\\b/ HTTP/1.1", InvalidAbsoluteForm, "3.2.2"),
        ("CONNECT / HTTP/1.1", AuthorityFormRequired, "3.2.3"),
        ("CONNECT * HTTP/1.1", AuthorityFormRequired, "3.2.3"),
        ("CONNECT a.test HTTP/1.1", AuthorityFormRequired, "3.2.3"),
        ("CONNECT a.test: HTTP/1.1", AuthorityFormRequired, "3.2.3"),
        ("CONNECT http://a.test:80 HTTP/1.1", AuthorityFormRequired, "3.2.3"),
        ("GET /a#b HTTP/1.1", FragmentInTarget, "3.2"),
        ("GET /\0 HTTP/1.1", InvalidTargetByte, "3.2"),
        ("GET /\x7f HTTP/1.1", InvalidTargetByte, "3.2"),
        ("GET /\t HTTP/1.1", InvalidTargetByte, "3.2"),
    ] {
        refused(&with_line(line), error, section);
    }
}

#[test]
fn every_line_ends_with_crlf() {
    use HeadError::*;
    for (bytes, error) in [
        (&b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..], BareLf),
        (b"GET / HTTP/1.1\rHost: a\r\n\r\n", BareCr),
        (b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", BareCr),
        (b"GET /\rHTTP/1.1\r\nHost: a\r\n\r\n", BareCr),
        (b"GET /\nHost: a\r\n\r\n", BareLf),
        (b"GET\n/ HTTP/1.1\r\nHost: a\r\n\r\n", BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\n\r\n", BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", BareCr),
        (b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", BareCr),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\n", BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\rX", BareCr),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX\rY: b\r\n\r\n", BareCr),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX\nY: b\r\n\r\n", BareLf),
        (b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", BareLf),
        (b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", BareCr),
    ] {
        refused(bytes, error, "2.2");
    }
}

#[test]
fn a_few_empty_lines_before_the_request_line_are_passed_over() {
    let bytes = b"\r\n\r\n\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    let head = parse(bytes).unwrap();
    assert_eq!(head.path(bytes), b"/a");
    let bytes = b"\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    refused(bytes, HeadError::TooManyEmptyLines, "2.2");
}

#[test]
fn empty_lines_alone_are_not_the_start_of_a_request() {
    let mut head = RequestHead::new();
    for (bytes, started) in
        [(&b""[..], false), (b"\r\n", false), (b"\r\n\r\n", false), (b"\r\n\r\nG", true)]
    {
        assert_eq!(head.parse(bytes, &LIMITS), Ok(HeadStatus::Partial));
        assert_eq!(head.has_started(bytes), started);
    }
}

#[test]
fn a_field_line_is_a_token_a_colon_and_a_value() {
    use HeadError::*;
    for (fields, error, section) in [
        ("X : b\r\n", SpaceBeforeColon, "5.1"),
        ("X\t: b\r\n", SpaceBeforeColon, "5.1"),
        ("X Y: b\r\n", SpaceBeforeColon, "5.1"),
        (": b\r\n", EmptyHeaderName, "5"),
        ("X\r\n", MissingColon, "5"),
        ("X: a\r\n b\r\n", ObsFold, "5.2"),
        ("X: a\r\n\tb\r\n", ObsFold, "5.2"),
        ("X: a\r\n \r\n", ObsFold, "5.2"),
        ("X\0: b\r\n", InvalidHeaderName, "5.1"),
        ("X\u{e4}: b\r\n", InvalidHeaderName, "5.1"),
        ("X(: b\r\n", InvalidHeaderName, "5.1"),
        ("X\x7f: b\r\n", InvalidHeaderName, "5.1"),
        ("X: \0\r\n", ControlInHeaderValue, "5.5 of RFC 9110"),
        ("X: a\x01b\r\n", ControlInHeaderValue, "5.5 of RFC 9110"),
        ("X: a\x0bb\r\n", ControlInHeaderValue, "5.5 of RFC 9110"),
        ("X: a\x7fb\r\n", ControlInHeaderValue, "5.5 of RFC 9110"),
    ] {
        refused(&with_fields(fields), error, section);
    }
    refused(b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", WhitespaceBeforeHeaders, "2.2");
    refused(b"GET / HTTP/1.1\r\n\tX: a\r\nHost: a\r\n\r\n", WhitespaceBeforeHeaders, "2.2");
}

#[test]
fn values_lose_the_white_space_around_them_and_keep_the_rest() {
    let bytes = with_fields("A:b\r\nC: \t d \t e \t\r\nEmpty:\r\nBlank: \t \r\nText: \u{e4}\r\n");
    let head = parse(&bytes).unwrap();
    let fields: Vec<(&[u8], &[u8])> = head.headers(&bytes).skip(1).collect();
    assert_eq!(
        fields,
        [
            (&b"A"[..], &b"b"[..]),
            (b"C", b"d \t e"),
            (b"Empty", b""),
            (b"Blank", b""),
            (b"Text", "\u{e4}".as_bytes()),
        ]
    );
    assert_eq!(head.header(&bytes, b"TEXT"), Some("\u{e4}".as_bytes()));
    assert_eq!(head.header(&bytes, b"None"), None);
    assert_eq!(head.header_count(), 6);
}

#[test]
fn a_request_has_at_most_one_valid_host_and_http_1_1_has_one() {
    use HeadError::*;
    for (bytes, error) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], MissingHost),
        (b"GET http://a/ HTTP/1.1\r\n\r\n", MissingHost),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", DuplicateHost),
        (b"GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n", DuplicateHost),
        (b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", DuplicateHost),
        (b"GET / HTTP/1.1\r\nHost:\r\nHost: a\r\n\r\n", DuplicateHost),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", InvalidHost),
        (b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", InvalidHost),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", InvalidHost),
        (b"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", InvalidHost),
        (b"GET / HTTP/1.1\r\nHost: http://a\r\n\r\n", InvalidHost),
        (b"GET / HTTP/1.0\r\nHost: a b\r\n\r\n", InvalidHost),
        (b"GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n", InvalidHost),
        (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", InvalidHost),
        (b"GET / HTTP/1.0\r\nHost: \r\n\r\n", InvalidHost),
    ] {
        refused(bytes, error, "3.2");
    }
}

#[test]
fn an_empty_or_absent_host_passes_where_nothing_depends_on_it() {
    for (bytes, host) in [
        (&b"GET / HTTP/1.0\r\n\r\n"[..], None),
        (b"OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", None),
        (b"GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n", Some(&b"a"[..])),
        (b"CONNECT a:1 HTTP/1.1\r\nHost:\r\n\r\n", Some(b"a:1")),
    ] {
        let head = parse(bytes).unwrap_or_else(|error| panic!("{}: {error}", bytes.escape_ascii()));
        assert_eq!(head.host(bytes), host);
    }
}

#[test]
fn the_body_has_one_framing() {
    for (fields, body) in [
        ("", BodyFraming::None),
        ("Content-Length: 0\r\n", BodyFraming::Length(0)),
        ("content-length:\t42 \r\n", BodyFraming::Length(42)),
        ("Content-Length: 007\r\n", BodyFraming::Length(7)),
        ("Content-Length: 9223372036854775807\r\n", BodyFraming::Length(i64::MAX as u64)),
        ("Transfer-Encoding: chunked\r\n", BodyFraming::Chunked),
        ("TRANSFER-ENCODING: CHUNKED\r\n", BodyFraming::Chunked),
    ] {
        assert_eq!(parse(&with_fields(fields)).unwrap().body(), body, "RFC 9112 6.3: {fields}");
    }
}

#[test]
fn a_body_with_doubtful_framing_is_refused() {
    use HeadError::*;
    for (fields, error, section) in [
        ("Content-Length: \r\n", MalformedContentLength, "6.3"),
        ("Content-Length: -1\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: +1\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: 1 2\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: 0x1\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: 1_0\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: 1.0\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: \"1\"\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: \u{664}\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: 1, 1\r\n", MalformedContentLength, "6.3 (list)"),
        ("Content-Length: 1,2\r\n", MalformedContentLength, "6.3 (list)"),
        ("Content-Length: 9223372036854775808\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: 18446744073709551617\r\n", MalformedContentLength, "6.3"),
        ("Content-Length: 1\r\nContent-Length: 2\r\n", DuplicateContentLength, "6.3"),
        ("Content-Length: 1\r\ncontent-length: 1\r\n", DuplicateContentLength, "6.3"),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", LengthWithTransferEncoding, "6.1"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", LengthWithTransferEncoding, "6.1"),
        ("Transfer-Encoding: chunked, chunked\r\n", ChunkedNotLast, "6.1"),
        ("Transfer-Encoding: chunked, gzip\r\n", ChunkedNotLast, "6.3"),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            DuplicateTransferEncoding,
            "6.1",
        ),
        ("Transfer-Encoding:\r\n", MalformedTransferEncoding, "6.1"),
        ("Transfer-Encoding: ,chunked\r\n", MalformedTransferEncoding, "6.1"),
        ("Transfer-Encoding: chunked;a=b\r\n", MalformedTransferEncoding, "7"),
        ("Transfer-Encoding: \"chunked\"\r\n", MalformedTransferEncoding, "6.1"),
        ("Transfer-Encoding: chunked chunked\r\n", MalformedTransferEncoding, "6.1"),
        ("Transfer-Encoding: gzip, chunked\r\n", UnknownTransferCoding, "6.1"),
        ("Transfer-Encoding: identity\r\n", UnknownTransferCoding, "6.1"),
        ("Transfer-Encoding: xchunked\r\n", UnknownTransferCoding, "6.1"),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", UnknownTransferCoding, "6.1"),
    ] {
        refused(&with_fields(fields), error, section);
    }
    refused(
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        TransferEncodingInHttp10,
        "6.1",
    );
}

#[test]
fn the_connection_lives_on_as_version_and_options_say() {
    for (version, fields, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: Close\r\n", false),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: x ,CLOSE,\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
        ("1.0", "Connection: Keep-Alive\r\nConnection: close\r\n", false),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n").into_bytes();
        assert_eq!(parse(&bytes).unwrap().keep_alive(), keep_alive, "RFC 9112 9.3: {fields}");
    }
}

#[test]
fn continue_is_expected_only_before_a_body_of_http_1_1() {
    for (version, fields, expected) in [
        ("1.1", "Expect: 100-continue\r\nContent-Length: 1\r\n", true),
        ("1.1", "expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n", true),
        ("1.1", "Expect: 100-continue\r\n", false),
        ("1.1", "Expect: 100-continue\r\nContent-Length: 0\r\n", false),
        ("1.1", "Expect: 200-ok\r\nContent-Length: 1\r\n", false),
        ("1.0", "Expect: 100-continue\r\nContent-Length: 1\r\n", false),
    ] {
        let bytes = format!("POST / HTTP/{version}\r\nHost: a\r\n{fields}\r\n").into_bytes();
        let head = parse(&bytes).unwrap();
        assert_eq!(head.expect_continue(), expected, "RFC 9110 10.1.1: {version} {fields}");
    }
}

#[test]
fn an_upgrade_needs_its_connection_option_and_http_1_1() {
    for (version, fields, upgrade) in [
        ("1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n", Some("websocket")),
        ("1.1", "Upgrade: h2c, x\r\nConnection: x, upgrade\r\n", Some("h2c, x")),
        ("1.1", "Upgrade: websocket\r\n", None),
        ("1.1", "Connection: upgrade\r\n", None),
        ("1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n", None),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n").into_bytes();
        let head = parse(&bytes).unwrap();
        assert_eq!(head.upgrade(&bytes), upgrade.map(str::as_bytes), "RFC 9110 7.8: {fields}");
    }
}

#[test]
fn limits_hold_to_the_byte() {
    let line = |bytes: usize| with_line(&format!("GET /{} HTTP/1.1", "a".repeat(bytes - 14)));
    assert!(parse(&line(LIMITS.request_line_bytes)).is_ok());
    let too_long = line(LIMITS.request_line_bytes + 1);
    refused(&too_long, HeadError::RequestLineTooLong, "3");
    assert_eq!(HeadError::RequestLineTooLong.status(), 414);

    let fixed = "Host: a.test\r\nX: \r\n\r\n".len();
    let fields = |bytes: usize| with_fields(&format!("X: {}\r\n", "a".repeat(bytes - fixed)));
    assert!(parse(&fields(LIMITS.header_bytes)).is_ok());
    refused(&fields(LIMITS.header_bytes + 1), HeadError::HeadersTooLong, "5");
    assert_eq!(HeadError::HeadersTooLong.status(), 431);

    let count = |fields: usize| with_fields(&"X: y\r\n".repeat(fields - 1));
    assert!(parse(&count(LIMITS.header_count)).is_ok());
    refused(&count(LIMITS.header_count + 1), HeadError::TooManyHeaders, "5");
    assert_eq!(HeadError::TooManyHeaders.status(), 431);
}

#[test]
fn a_limit_is_enforced_before_the_line_ends() {
    let mut head = RequestHead::new();
    let mut endless = b"GET /".to_vec();
    endless.resize(LIMITS.request_line_bytes + 2, b'a');
    assert_eq!(head.parse(&endless, &LIMITS), Err(HeadError::RequestLineTooLong));
    let mut endless = b"GET / HTTP/1.1\r\nX: ".to_vec();
    endless.resize(16 + LIMITS.header_bytes, b'a');
    assert_eq!(head.parse(&endless, &LIMITS), Err(HeadError::HeadersTooLong));
    endless.pop();
    assert_eq!(head.parse(&endless, &LIMITS), Ok(HeadStatus::Partial));
}

#[test]
fn pipelined_requests_are_read_one_after_the_other() {
    let bytes = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\
                  POST /2 HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\n\r\nxy\
                  GET /3 HTTP/1.1\r\nHost: c\r\nConnection: close\r\n\r\nrest";
    let mut head = RequestHead::new();
    let mut at = 0;
    for (path, host, keep_alive) in [("/1", "a", true), ("/2", "b", true), ("/3", "c", false)] {
        let rest = &bytes[at..];
        let Ok(HeadStatus::Complete { head_len }) = head.parse(rest, &LIMITS) else {
            panic!("no head for {path}");
        };
        assert_eq!(head.path(rest), path.as_bytes());
        assert_eq!(head.host(rest), Some(host.as_bytes()));
        assert_eq!(head.keep_alive(), keep_alive);
        at += head_len;
        if let BodyFraming::Length(length) = head.body() {
            at += length as usize;
        }
    }
    assert_eq!(&bytes[at..], b"rest");
}

#[test]
fn a_refused_head_leaves_nothing_behind() {
    let mut head = RequestHead::new();
    let bad = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nX : y\r\n\r\n";
    assert_eq!(head.parse(bad, &LIMITS), Err(HeadError::SpaceBeforeColon));
    let good = b"GET / HTTP/1.1\r\nHost: b\r\n\r\n";
    assert_eq!(head.parse(good, &LIMITS), Ok(HeadStatus::Complete { head_len: good.len() }));
    assert_eq!((head.host(good), head.body()), (Some(&b"b"[..]), BodyFraming::None));
}

#[test]
fn reasons_are_unique_and_in_snake_case() {
    let reasons: std::collections::HashSet<_> =
        HeadError::ALL.iter().map(|error| error.reason()).collect();
    assert_eq!(reasons.len(), HeadError::ALL.len());
    for error in HeadError::ALL {
        let is_snake =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(error.reason().bytes().all(is_snake), "{error}");
        assert!(matches!(error.status(), 400 | 414 | 431 | 501 | 505), "{error}");
    }
}

#[test]
fn a_long_method_is_invalid() {
    let named = |bytes: usize| with_line(&format!("{} / HTTP/1.1", "A".repeat(bytes)));
    assert!(parse(&named(128)).is_ok());
    assert_eq!(parse(&named(129)).unwrap_err(), HeadError::InvalidMethod);
    // Not that the target is too long, and without a wait for its end.
    assert_eq!(HeadError::InvalidMethod.status(), 400);
    let endless = RequestHead::new().parse(&[b'A'; 129], &LIMITS);
    assert_eq!(endless, Err(HeadError::InvalidMethod));
}
