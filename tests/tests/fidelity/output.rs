//! Output buffering, compression by PHP, and what is printed when.

use crate::pair;
use outboard_e2e::Request;

#[track_caller]
fn same(target: &str) -> outboard_e2e::Response {
    pair().same(&Request::get(target))
}

#[test]
fn a_script_prints_what_it_prints() {
    same("/hello.php").expect(200).saying("Hello, world\n");
    same("/empty_script.php").expect(200).saying("");
    same("/whitespace.php").expect(200).holding("trailing text");
    same("/shebang.php").expect(200).holding("shebang");
    same("/bom.php").expect(200);
}

#[test]
fn output_buffers_nest_and_let_headers_follow() {
    same("/output_buffering.php").expect(200).holding("UPPER");
}

#[test]
fn headers_sent_says_where() {
    same("/headers_sent.php").expect(200).holding("[true,\"headers_sent.php\"");
}

#[test]
fn a_flush_before_output_leaves_the_headers_open() {
    let response = same("/flush_first.php");
    assert_eq!(response.header("x-early"), Some("1"));
}

#[test]
fn implicit_flush_loses_nothing() {
    same("/implicit_flush.php").expect(200).holding("piece 4");
}

#[test]
fn php_output_is_the_response_and_stdio_is_not_defined() {
    same("/stdout.php").expect(200).holding("through php://output");
}

#[test]
fn output_is_compressed_by_php_when_the_client_takes_it() {
    for script in ["/compressed.php", "/gzhandler.php"] {
        let request = Request::get(script).header("Accept-Encoding", "gzip");
        let response = pair().same(&request).expect(200);
        assert_eq!(response.header("content-encoding"), Some("gzip"), "{script}");
        assert_eq!(&response.body[..2], b"\x1f\x8b", "{script}");
        let plain = same(script).expect(200);
        assert_eq!(plain.header("content-encoding"), None, "{script}");
    }
}

#[test]
fn shutdown_functions_and_destructors_still_print() {
    let response = same("/shutdown.php").expect(200).holding("nested");
    assert!(response.text().ends_with("destructor\n"));
}

#[test]
fn exit_ends_the_script_and_keeps_what_was_printed() {
    same("/exit_code.php").expect(200).saying("before\n");
    same("/die_in_buffer.php").expect(200).saying("buffered twice and flushed\n");
    same("/die_in_function.php").expect(200).saying("deep\n");
}
