//! `$_FILES`: uploads that succeed and every way they can fail.

use crate::pair;
use outboard_e2e::{Multipart, Request};

#[test]
fn files_arrive_with_name_type_size_and_content() {
    let parts = Multipart::new()
        .field("text", "value")
        .file("one", "a file.txt", "text/plain", b"content of one")
        .file("two", "zwei \u{fc}.bin", "application/octet-stream", &[0, 255, 10, 13, 10])
        .file("empty", "empty.txt", "text/plain", b"");
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("uploaded");
}

#[test]
fn fields_with_brackets_become_arrays_of_files() {
    let parts = Multipart::new()
        .file("list[]", "1.txt", "text/plain", b"1")
        .file("list[]", "2.txt", "text/plain", b"22")
        .file("map[a][b]", "3.txt", "text/plain", b"333")
        .field("list2[]", "x");
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("\"2.txt\"");
}

#[test]
fn folders_in_names_are_cut_off_and_kept_in_full_path() {
    let parts = Multipart::new()
        .file("unix", "../../etc/passwd", "text/plain", b"x")
        .file("windows", "C:\\\\folder\\\\file.txt", "text/plain", b"x")
        .file("folder", "dir/sub/file.txt", "text/plain", b"x");
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("full_path");
}

#[test]
fn a_file_beyond_upload_max_filesize_is_error_1() {
    let parts = Multipart::new().file("big", "big.bin", "text/plain", &[b'x'; 1500]).file(
        "small",
        "small.txt",
        "text/plain",
        b"fits",
    );
    let request = Request::upload("/small/upload.php", parts);
    pair().same(&request).expect(200).holding("\"error\": 1");
}

#[test]
fn a_file_beyond_the_forms_own_limit_is_error_2() {
    let parts = Multipart::new().field("MAX_FILE_SIZE", "10").file(
        "file",
        "file.txt",
        "text/plain",
        b"more than ten bytes",
    );
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("\"error\": 2");
}

#[test]
fn a_file_that_was_cut_short_is_error_3() {
    let parts = Multipart::new().file("file", "f.txt", "text/plain", b"the beginning").cut_short();
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("\"error\": 3");
}

#[test]
fn a_form_without_a_chosen_file_is_error_4() {
    let parts = Multipart::new().file("file", "", "application/octet-stream", b"");
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("\"error\": 4");
}

#[test]
fn more_than_max_file_uploads_are_left_out() {
    let parts = (0..5).fold(Multipart::new(), |parts, number| {
        parts.file(&format!("f{number}"), "f.txt", "text/plain", b"x")
    });
    pair().same(&Request::upload("/small/upload.php", parts)).expect(200);
    let parts = (0..25).fold(Multipart::new(), |parts, number| {
        parts.file(&format!("f{number}"), "f.txt", "text/plain", b"x")
    });
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("f19");
}

#[test]
fn an_upload_beyond_post_max_size_leaves_nothing() {
    let parts = Multipart::new().file("file", "f.txt", "text/plain", &[b'x'; 4096]);
    pair().same(&Request::upload("/small/upload.php", parts)).expect(200).holding("post []");
}

#[test]
fn move_uploaded_file_moves_uploads_alone() {
    let parts = Multipart::new().file("file", "f.txt", "text/plain", b"to be moved");
    pair().same(&Request::upload("/move.php", parts)).expect(200).holding("\"moved\": true");
}

#[test]
fn a_temporary_file_is_gone_after_the_request() {
    for site in [&pair().reference, &pair().subject] {
        let mut client = outboard_e2e::Client::new(site.address());
        let parts = Multipart::new().file("file", "f.txt", "text/plain", b"left behind");
        let path = client.send(&Request::upload("/upload_leftover.php", parts)).expect(200).text();
        assert!(path.contains("/php"), "{path}");
        // php-fpm ends the answer before it removes the file (sapi_deactivate_module), so the
        // first answers may still see it.
        let question = Request::get(&format!("/upload_leftover.php?path={path}"));
        let gone = (0..100).any(|_| client.send(&question).text() == "gone");
        assert!(gone, "{path} is left by {}", site.name());
    }
}

#[test]
fn broken_multipart_reads_alike() {
    let whole = Multipart::new().field("a", "1").file("f", "f.txt", "text/plain", b"x").finish();
    for content_type in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=other",
        "multipart/form-data; boundary=\"unfinished",
        "multipart/form-data; BOUNDARY=----outboard-boundary-7d1a4c",
        "multipart/form-data; boundary=----outboard-boundary-7d1a4c, more",
        "multipart/mixed; boundary=----outboard-boundary-7d1a4c",
    ] {
        pair().same(&Request::post("/upload.php", content_type, whole.1.clone())).expect(200);
    }
}

#[test]
fn odd_parts_read_alike() {
    let parts = Multipart::new()
        .part(&["Content-Disposition: form-data; name=unquoted"], b"1")
        .part(&["content-disposition: form-data; name=\"quo\\\"ted\""], b"2")
        .part(&["Content-Disposition: form-data; name='single'"], b"3")
        .part(&["Content-Disposition: form-data; name=\"f\"; filename=\"a\"b\""], b"4")
        .part(&["Content-Disposition: form-data; filename=\"anonymous.txt\""], b"5")
        .part(&["Content-Disposition: form-data; name=\"g\"; filename*=UTF-8''%e2.txt"], b"6");
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("unquoted");
}

#[test]
fn a_part_without_a_name_ends_the_reading() {
    let parts = Multipart::new()
        .field("before", "1")
        .part(&["X-Other: header"], b"no disposition")
        .part(&["Content-Disposition: form-data"], b"neither name nor file name")
        .field("after", "1");
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("garbled");
}

#[test]
fn an_upload_of_20_mb_arrives_whole() {
    let content: Vec<u8> = (0..20 << 20).map(|index| (index / 241 % 256) as u8).collect();
    let parts = Multipart::new().file("big", "big.bin", "application/octet-stream", &content);
    pair().same(&Request::upload("/upload.php", parts)).expect(200).holding("20971520");
}
