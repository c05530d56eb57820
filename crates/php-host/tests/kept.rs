//! What an application keeps of a request in a global, and uses in a later one: it may have nothing more
//! to say, and harms nobody.

mod driver;

use driver::{Resident, finished, post};

const JSON: &str = "application/json";

/// A worker for so many requests at a time whose `/keep` runs the first and every other request the second
/// code; `$k` is theirs in common.
fn keeping(concurrency: u32, keep: &str, later: &str) -> Resident {
    Resident::concurrent(
        concurrency,
        &format!(
            "$k = null; while (Outboard\\handle_request(function () {{
                global $k; if ($_SERVER['REQUEST_URI'] === '/keep') {{ {keep} }} else {{ {later} }} }}));"
        ),
    )
}

fn body_of(name: u8, len: usize) -> Vec<u8> {
    vec![name; len]
}

#[test]
fn a_handle_of_a_body_is_at_its_end_when_its_request_is_over() {
    for (open, read) in [
        ("$k = fopen('php://input', 'r'); fread($k, 10);", "fread($k, 100000)"),
        ("$k = fopen('php://input', 'r'); fread($k, 10);", "stream_get_contents($k)"),
        ("$k = new SplFileObject('php://input'); $k->fread(10);", "$k->fread(100000)"),
        (
            "$k = fopen('php://filter/read=string.toupper/resource=php://input', 'r'); fread($k, 10);",
            "fread($k, 100000)",
        ),
    ] {
        for concurrency in [1, 20] {
            let mut app = keeping(concurrency, open, &format!("echo 'read:', {read};"));
            for _ in 0..2 {
                app.worker.ask(&post("keep", JSON, body_of(b'A', 100_000)));
                assert_eq!(app.get("a"), "read:", "{open}");
                let other = finished(&app.worker.ask(&post("a", JSON, body_of(b'B', 100_000))));
                assert_eq!(other, "read:", "{open}");
            }
        }
    }
}

#[test]
fn the_body_of_a_request_is_its_own_whatever_was_kept_of_another() {
    let later = "echo strlen(file_get_contents('php://input')), feof($k) ? ' ended' : '';";
    let mut app = keeping(1, "$k = fopen('php://input', 'r'); fread($k, 10);", later);
    app.worker.ask(&post("keep", JSON, body_of(b'A', 100_000)));
    assert_eq!(finished(&app.worker.ask(&post("a", JSON, body_of(b'B', 70_000)))), "70000 ended");
}
