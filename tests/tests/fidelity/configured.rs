//! Settings of php.ini that hold for the whole server.

use crate::scrub;
use outboard_e2e::{Docroot, Multipart, Pair, Request};

/// A pair of its own with these settings.
fn with(settings: &[(&str, &str)]) -> (Docroot, Pair) {
    let docroot = Docroot::of("fidelity");
    let app = settings.iter().fold(docroot.app(), |app, (name, value)| app.ini(name, value));
    let pair = Pair::start(&app).scrubbed(scrub());
    (docroot, pair)
}

#[test]
fn without_file_uploads_there_are_no_files() {
    let (_docroot, pair) = with(&[("file_uploads", "Off")]);
    let parts = Multipart::new().field("a", "1").file("f", "f.txt", "text/plain", b"x");
    let response = pair.same(&Request::upload("/upload.php", parts)).expect(200);
    assert!(!response.text().contains("f.txt"));
}

#[test]
fn without_a_folder_for_uploads_the_error_is_6() {
    let missing = "/nonexistent/outboard-e2e";
    let (_docroot, pair) = with(&[("upload_tmp_dir", missing), ("sys_temp_dir", missing)]);
    let parts = Multipart::new().file("f", "f.txt", "text/plain", b"x");
    let response = pair.same(&Request::upload("/upload.php", parts)).expect(200);
    assert!(response.text().contains("\"error\": 6"), "{}", response.text());
}

#[test]
fn without_reading_post_data_the_script_reads_it_itself() {
    let (_docroot, pair) = with(&[("enable_post_data_reading", "Off")]);
    pair.same(&Request::form("/form_raw.php", &[("a", "1")])).expect(200).holding("[\"a=1\",[]]");
    let parts = Multipart::new().file("f", "f.txt", "text/plain", b"content");
    pair.same(&Request::upload("/body.php", parts)).expect(200).holding("content");
}

#[test]
fn other_defaults_show_as_under_php_fpm() {
    let (_docroot, pair) = with(&[
        ("output_buffering", "0"),
        ("zlib.output_compression", "On"),
        ("register_argc_argv", "On"),
        ("display_errors", "On"),
        ("display_startup_errors", "On"),
        ("html_errors", "On"),
        ("expose_php", "Off"),
        ("default_charset", "iso-8859-1"),
        ("variables_order", "EGPCS"),
        ("request_order", "CGP"),
        ("auto_globals_jit", "Off"),
        ("ignore_user_abort", "On"),
    ]);
    let zipped = Request::get("/big.php").header("Accept-Encoding", "gzip");
    let response = pair.same(&zipped).expect(200);
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert_eq!(response.header("x-powered-by"), None);
    pair.same(&Request::get("/hello.php")).expect(200).saying("Hello, world\n");
    pair.same(&Request::get("/arguments.php?one+two")).expect(200).holding("\"one\"");
    pair.same(&Request::get("/output_buffering.php")).expect(200);
    pair.same(&Request::get("/headers_sent.php")).expect(200);
    pair.same(&Request::get("/environment.php")).expect(200);
    pair.same(&Request::get("/globals.php")).expect(200);
    pair.same(&Request::get("/parse_error.php")).holding("Parse error");
    pair.same(&Request::get("/memory_limit.php")).holding("Allowed memory size");
    let mixed = Request::form("/input.php?a=get", &[("a", "post")]).header("Cookie", "a=cookie");
    pair.same(&mixed).expect(200);
    let large = format!("a={}", "x".repeat(40 << 20));
    let form = "application/x-www-form-urlencoded";
    pair.same(&Request::post("/input.php", form, large)).holding("exceeds the limit");
    let many: Vec<String> = (0..1100).map(|number| format!("v{number}=1")).collect();
    pair.same(&Request::post("/input.php", form, many.join("&")))
        .holding("Input variables exceeded");
}
