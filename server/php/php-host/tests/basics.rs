//! A worker responds through the ring as php-fpm would.

mod driver;

use driver::{Host, finished, get};
use outboard_ring::control::Event;

#[test]
fn hello_is_served_through_the_ring() {
    let mut host = Host::new();
    let mut worker = host.fork();
    for _ in 0..3 {
        let response = worker.request(&get("hello.php"));
        assert_eq!(finished(&response), "hello\n");
        assert_eq!(response.status, 200);
        assert_eq!(response.line("content-type"), Some("text/html; charset=UTF-8"));
        assert!(response.line("x-powered-by").unwrap_or("none").starts_with("PHP/"));
    }
}

#[test]
fn the_engine_reports_its_version_and_opcache() {
    let host = Host::new();
    let Event::Started { php_version, opcache, post_max_bytes, .. } = &host.started else {
        panic!("{:?}", host.started)
    };
    assert!(php_version.starts_with("8."), "{php_version}");
    assert!(opcache);
    assert_eq!(*post_max_bytes, 8 * 1024 * 1024);
}
