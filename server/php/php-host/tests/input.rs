//! Bodies reach the script: forms, uploads, php://input, large and unread ones.

mod driver;

use driver::{Host, TempDir, finished, get, ini, post, settings};
use outboard_ring::frame::FrameKind;
use outboard_ring::response::Outcome;

const FORM: &str = "application/x-www-form-urlencoded";

fn script(code: &str) -> TempDir {
    let folder = TempDir::new();
    folder.write("run.php", &format!("<?php {code}"));
    folder
}

fn multipart(parts: &[(&str, Option<&str>, &str)]) -> (String, Vec<u8>) {
    let mut body = String::new();
    for (name, file, content) in parts {
        body += &format!("--B0und\r\nContent-Disposition: form-data; name=\"{name}\"");
        if let Some(file) = file {
            body += &format!("; filename=\"{file}\"\r\nContent-Type: text/plain");
        }
        body += &format!("\r\n\r\n{content}\r\n");
    }
    body += "--B0und--\r\n";
    ("multipart/form-data; boundary=B0und".into(), body.into_bytes())
}

#[test]
fn a_form_fills_the_superglobals() {
    let mut host = Host::new();
    let folder = script("echo json_encode([$_GET, $_POST, $_COOKIE, $_REQUEST]);");
    let request = post("run.php", FORM, "a[]=1&a[]=2&b=x+y")
        .root(&folder.0)
        .query("q=1&b=from-query")
        .header("Cookie", "c=3; d=4");
    assert_eq!(
        finished(&host.fork().request(&request)),
        r#"[{"q":"1","b":"from-query"},{"a":["1","2"],"b":"x y"},{"c":"3","d":"4"},"#.to_owned()
            + r#"{"q":"1","b":"x y","a":["1","2"]}]"#
    );
}

#[test]
fn the_raw_body_can_be_read_twice_and_with_any_method() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = script(
        "echo file_get_contents('php://input'), '|', file_get_contents('php://input'), '|',
              count($_POST);",
    );
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let request =
            post("run.php", "application/json", "{\"a\":1}").root(&folder.0).method(method);
        assert_eq!(finished(&worker.request(&request)), "{\"a\":1}|{\"a\":1}|0", "{method}");
    }
    let request = post("run.php", FORM, "a=1").root(&folder.0);
    assert_eq!(finished(&worker.request(&request)), "a=1|a=1|1");
}

#[test]
fn uploads_arrive_with_every_error_code() {
    let mut host = Host::with({
        let mut settings = settings();
        settings.ini.extend(ini(&[("upload_max_filesize", "10"), ("max_file_uploads", "4")]));
        settings
    });
    let folder = script(
        "foreach ($_FILES as $name => $file) { echo \"$name:$file[error]:$file[size] \"; }
         echo move_uploaded_file($_FILES['good']['tmp_name'], 'kept') ? file_get_contents('kept') : '-',
              ' ', $_POST['field'], ' ', strlen(file_get_contents('php://input'));",
    );
    let (content_type, body) = multipart(&[
        ("field", None, "value"),
        ("good", Some("a.txt"), "12345"),
        ("empty", Some(""), ""),
        ("large", Some("b.txt"), "12345678901"),
        ("MAX_FILE_SIZE", None, "2"),
        ("form", Some("c.txt"), "123"),
    ]);
    let request = post("run.php", &content_type, body).root(&folder.0);
    assert_eq!(
        finished(&host.fork().request(&request)),
        "good:0:5 empty:4:0 large:1:0 form:2:0 12345 value 0"
    );
}

#[test]
fn an_upload_that_cannot_be_stored_has_an_error_code() {
    let mut host = Host::with({
        let mut settings = settings();
        settings.ini.extend(ini(&[("upload_tmp_dir", "/nowhere"), ("sys_temp_dir", "/nowhere")]));
        settings
    });
    let folder = script("echo $_FILES['f']['error'];");
    let (content_type, body) = multipart(&[("f", Some("a.txt"), "12345")]);
    let response = host.fork().request(&post("run.php", &content_type, body).root(&folder.0));
    // UPLOAD_ERR_NO_TMP_DIR, or 0 if PHP falls back to /tmp.
    assert!(["6", "0"].contains(&response.text().as_str()), "{response:?}");
}

#[test]
fn a_form_cut_short_by_a_lost_client_is_a_partial_upload() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = script("ignore_user_abort(true); file_put_contents('e', $_FILES['f']['error']);");
    let (content_type, body) = multipart(&[("f", Some("a.txt"), &"x".repeat(50_000))]);
    let tag = worker.begin(&post("run.php", &content_type, body.clone()).root(&folder.0));
    worker.push(FrameKind::RequestBody, tag, &body[..20_000]);
    worker.abort(tag);
    worker.drain(tag);
    assert_eq!(std::fs::read_to_string(folder.0.join("e")).unwrap(), "3");
    assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n");
}

#[test]
fn a_body_above_post_max_size_is_dropped_with_a_warning() {
    let mut host = Host::with({
        let mut settings = settings();
        settings.ini.extend(ini(&[("post_max_size", "1K")]));
        settings
    });
    let mut worker = host.fork();
    let folder = script("echo count($_POST);");
    let response = worker.request(&post("run.php", FORM, vec![b'a'; 200_000]).root(&folder.0));
    assert!(response.log_text().contains("exceeds the limit of 1024 bytes"), "{response:?}");
    assert!(response.text().ends_with('0'));
    assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n");
}

#[test]
fn max_input_vars_cuts_variables_with_a_warning() {
    let mut host = Host::with({
        let mut settings = settings();
        settings.ini.extend(ini(&[("max_input_vars", "2")]));
        settings
    });
    let folder = script("echo count($_POST);");
    let response = host.fork().request(&post("run.php", FORM, "a=1&b=2&c=3&d=4").root(&folder.0));
    assert!(response.log_text().contains("Input variables exceeded 2"), "{response:?}");
}

#[test]
fn twenty_megabytes_stream_through_the_ring() {
    let mut host = Host::new();
    let folder = script(
        "$in = fopen('php://input', 'r'); $hash = hash_init('sha256'); $n = 0;
         while (!feof($in)) { $piece = fread($in, 65536); $n += strlen($piece);
             hash_update($hash, $piece); }
         echo $n, ' ', hash_final($hash);",
    );
    let body: Vec<u8> =
        (0..20_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let file = folder.0.join("body");
    std::fs::write(&file, &body).unwrap();
    let sum = std::process::Command::new("sha256sum").arg(&file).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let request = post("run.php", "application/octet-stream", body).method("PUT").root(&folder.0);
    let text = finished(&host.fork().request(&request));
    assert_eq!(text, format!("20000000 {}", sum.split(' ').next().unwrap()));
}

#[test]
fn an_unread_body_does_not_disturb_the_next_request() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = script("echo 'not interested';");
    for _ in 0..3 {
        let request =
            post("run.php", "text/plain", vec![b'x'; 300_000]).method("PUT").root(&folder.0);
        let tag = worker.begin(&request);
        worker.push(FrameKind::RequestBody, tag, &[b'x'; 40_000]);
        let (mut text, mut done) = (Vec::new(), false);
        while !done {
            let (header, payload) = worker.frame();
            match header.kind {
                FrameKind::Body => text.extend(payload),
                kind => done = kind == FrameKind::Done,
            }
        }
        assert_eq!(text, b"not interested");
        // The rest arrives after the request has ended.
        worker.push(FrameKind::RequestBody, tag, &[b'x'; 40_000]);
        let response = worker.request(&get("hello.php"));
        assert_eq!(
            (response.done.outcome, response.text().as_str()),
            (Outcome::Finished, "hello\n")
        );
    }
}
