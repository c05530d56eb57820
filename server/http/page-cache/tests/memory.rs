//! The budget bounds the resident memory of the process, indices included.
//!
//! The test has a binary of its own, so that no other test changes the figure.

mod support;

use outboard_page_cache::{Entry, Fields, Key, Store, tags_of};
use support::{NOW_S, lines, stored};

const BUDGET_BYTES: usize = 64 << 20;

/// Resident memory of this process, in bytes.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_million_urls_stay_within_a_tenth_more_than_the_budget() {
    let response = "Cache-Control: max-age=60\nContent-Type: text/html; charset=UTF-8";
    let storable = stored("", response).unwrap();
    let fields = lines(response);
    let before_bytes = resident_bytes();
    let mut store = Store::new(BUDGET_BYTES);
    let mut most_bytes = 0;
    for number in 0..1_000_000_usize {
        let path = format!("/archive/{number}/a-title-of-a-page?utm={number}");
        let key = Key::new(true, b"www.example.test", path.as_bytes());
        // From zero to four kilobytes, so that freed memory rarely fits the next body.
        let body = vec![b'x'; number * 7919 % 4096].into();
        let tags = format!("post-{number}, section-{}, all", number % 100);
        let tags = tags_of(Fields(&[(b"Cache-Tag", tags.as_bytes())]));
        let entry = Entry::new(key, 200, Fields(&fields), body, storable.clone(), tags);
        store.insert(entry, store.purge_epoch(), NOW_S).unwrap();
        if number % 10_000 == 0 {
            most_bytes = most_bytes.max(resident_bytes().saturating_sub(before_bytes));
        }
    }
    println!("{} pages, {} KiB at most", store.len(), most_bytes >> 10);
    assert!(store.used_bytes() <= BUDGET_BYTES);
    assert!(store.used_bytes() > BUDGET_BYTES / 10 * 9, "the budget is used");
    let within_bytes = BUDGET_BYTES / 10 * 11;
    assert!(most_bytes <= within_bytes, "{most_bytes} bytes of {within_bytes}");
}
