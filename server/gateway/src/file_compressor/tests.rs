//! Files that are compressed on demand, as clients receive them.

use super::*;
use crate::testing::{BusyThreads, Site, in_loop, request_text};
use flate2::read::GzDecoder;
use outboard_reactor::yield_now;
use std::io::Read;
use std::time::Instant;

const COMPRESS: &str = "compress = true";
const GZIP: &str = "Accept-Encoding: gzip\r\n";

/// A text of which 1,000 numbers are in memory and 20,000 are not.
fn text(numbers: usize) -> String {
    (0..numbers).map(|number| format!("{number} ")).collect()
}

/// The head and the body of a response.
async fn get(site: &Site, path: &str, lines: &str) -> (String, Vec<u8>) {
    let client = site.connect();
    client.send(request_text("GET", path, lines, ""));
    let bytes = client.receive_bytes_to_end().await;
    let end = memchr::memmem::find(&bytes, b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = format!("Content-Length: {}\r\n", bytes.len() - end);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(&length), "{head}");
    (head, bytes[end..].to_vec())
}

fn is_coded(head: &str) -> bool {
    head.contains("Content-Encoding: ")
}

/// Requests a file until it is compressed. A file that has just been written is opened anew each time.
async fn get_coded(site: &Site, path: &str, lines: &str) -> (String, Vec<u8>) {
    let started = Instant::now();
    loop {
        site.app().files.clear_cache();
        let (head, body) = get(site, path, lines).await;
        if is_coded(&head) {
            return (head, body);
        }
        assert!(started.elapsed().as_secs() < 10, "it stays as it is: {head}");
        yield_now().await;
    }
}

fn decoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

fn waiting(site: &Site) -> usize {
    site.app().file_compressor.waiting.borrow().len()
}

/// Whether a file is on its way through the threads.
fn is_running(site: &Site) -> bool {
    site.app().file_compressor.is_running.get()
}

/// Requests a file until its compression has begun.
async fn begin(site: &Site, path: &str) {
    let started = Instant::now();
    while !is_running(site) {
        site.app().files.clear_cache();
        assert!(!is_coded(&get(site, path, GZIP).await.0));
        assert!(started.elapsed().as_secs() < 10, "it does not begin");
    }
}

#[test]
fn files_in_memory_and_on_disk_are_compressed_for_later_requests() {
    in_loop(async {
        let (small, large) = (text(1_000), text(20_000));
        let rules = "\n[[app.site.headers]]\nset = { X-A = \"1\" }\n";
        for keys in [COMPRESS.to_owned(), format!("{COMPRESS}{rules}")] {
            let site = Site::new(&[("a.css", &small), ("b.js", &large)], &keys);
            for (path, content) in [("/a.css", &small), ("/b.js", &large)] {
                let (head, body) = get(&site, path, GZIP).await;
                assert!(!is_coded(&head) && body == content.as_bytes());
                assert!(head.contains("Vary: Accept-Encoding\r\n"));
                let (head, body) = get_coded(&site, path, GZIP).await;
                assert!(head.contains("Content-Encoding: gzip\r\n"));
                assert!(head.contains("Vary: Accept-Encoding\r\n"));
                assert_eq!(head.contains("X-A: 1\r\n"), keys.contains("X-A"));
                assert!(decoded(&body) == *content);
                let (head, body) = get(&site, path, "").await;
                assert!(!is_coded(&head) && body == content.as_bytes());
                get_coded(&site, path, "Accept-Encoding: gzip, br\r\n").await;
            }
        }
    });
}

#[test]
fn nobody_waits_for_a_compression() {
    in_loop(async {
        let content = text(20_000);
        let site = Site::new(&[("a.css", &content), ("b.css", &content)], COMPRESS);
        let threads = BusyThreads::new();
        begin(&site, "/a.css").await;
        for path in ["/a.css", "/b.css", "/a.css", "/b.css"] {
            let (head, body) = get(&site, path, GZIP).await;
            assert!(!is_coded(&head) && body == content.as_bytes());
        }
        assert!(waiting(&site) <= 1, "each file is taken on once");
        drop(threads);
        for path in ["/a.css", "/b.css"] {
            assert!(decoded(&get_coded(&site, path, GZIP).await.1) == content);
        }
    });
}

#[test]
fn a_file_that_is_replaced_meanwhile_is_compressed_anew() {
    in_loop(async {
        let (old, new) = (text(20_000), text(30_000));
        let site = Site::new(&[("a.css", &old)], COMPRESS);
        let path = site.directory().join("www/a.css");
        let threads = BusyThreads::new();
        begin(&site, "/a.css").await;
        std::fs::write(&path, &new).unwrap();
        drop(threads);
        assert!(decoded(&get_coded(&site, "/a.css", GZIP).await.1) == new);
        std::fs::remove_file(&path).unwrap();
        site.app().files.clear_cache();
        assert_eq!(site.request("GET", "/a.css", GZIP, "").await.status, 404);
    });
}

#[test]
fn a_flood_of_files_fills_neither_the_queue_nor_the_threads() {
    const FILES: usize = 3 * WAITING_MAX;
    in_loop(async {
        let content = text(300);
        let names: Vec<_> = (0..FILES).map(|number| format!("{number}.css")).collect();
        let mut files: Vec<_> = names.iter().map(|name| (&name[..], &content[..])).collect();
        files.push(("hot.css", &content));
        let keys = "compress = true\nstatic.compressed_memory = \"16k\"";
        let site = Site::new(&files, keys);
        let threads = BusyThreads::new();
        begin(&site, "/hot.css").await;
        for name in &names {
            let (head, body) = get(&site, &format!("/{name}"), GZIP).await;
            assert!(!is_coded(&head) && body == content.as_bytes());
            assert!(waiting(&site) <= WAITING_MAX && !are_cpu_threads_busy());
        }
        assert_eq!(waiting(&site), WAITING_MAX);
        drop(threads);
        assert!(decoded(&get_coded(&site, "/hot.css", GZIP).await.1) == content);
    });
}

#[test]
fn what_waits_when_the_app_is_closed_is_dropped() {
    in_loop(async {
        let content = text(1_000);
        let site = Site::new(&[("a.css", &content), ("b.css", &content)], COMPRESS);
        let threads = BusyThreads::new();
        begin(&site, "/a.css").await;
        let compressor = Rc::downgrade(&site.app().file_compressor);
        get(&site, "/b.css", GZIP).await;
        drop(site);
        assert!(compressor.upgrade().is_none());
        drop(threads);
    });
}

#[test]
fn files_stay_as_they_are_unless_the_app_compresses() {
    in_loop(async {
        let content = text(1_000);
        let keys = [
            "",
            "compress = true\nstatic.compressed_memory = 0",
            "compress = true\nstatic.compressed_memory = \"4k\"",
        ];
        for keys in keys {
            let site = Site::new(&[("a.css", &content)], keys);
            let (head, _) = get(&site, "/a.css", GZIP).await;
            assert!(!head.contains("Vary") && !is_running(&site), "{keys}: {head}");
        }
    });
}

#[test]
fn a_file_that_a_script_names_is_not_compressed() {
    in_loop(async {
        let content = text(1_000);
        let site = Site::new(&[("a.css", &content), ("a.php", "<?php")], COMPRESS);
        let file = site.directory().join("www/a.css");
        let order = format!("X-Sendfile: {}", file.display());
        let response = site.with_php("GET", "/a.php", GZIP, |php| php.respond(200, &[&order], ""));
        let response = response.await;
        assert_eq!((response.status, response.header("content-encoding")), (200, None));
        assert!(response.body == content && !is_running(&site));
    });
}
