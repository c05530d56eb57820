//! Any path and any conditions of a request for a file: nothing outside of the root is found, and what
//! is sent lies inside of the file and is as long as is said.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http_semantics::Conditions;
use outboard_http1::normalize_path;
use outboard_static_files::{Lookup, Part, Root, RootOptions, plan};
use std::path::Path;

/// What is in each file of `site`.
const TEXT: &[u8] = b"twenty bytes of text";

thread_local! {
    static ROOT: Root = open();
}

fn open() -> Root {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/site/root");
    let options = RootOptions { cache_capacity: 8, ..RootOptions::default() };
    Root::open(Path::new(root), options).expect("the folder is in git")
}

fuzz_target!(|input: (&[u8], [Option<&[u8]>; 7], bool)| {
    let (raw, [accept_encoding, if_match, if_none_match, since, until, range, if_range], is_head) =
        input;
    let conditions = Conditions {
        is_head,
        if_match,
        if_none_match,
        if_modified_since: since,
        if_unmodified_since: until,
        range,
        if_range,
    };
    let mut path = Vec::new();
    if normalize_path(raw, &mut path).is_ok() {
        check(&path, accept_encoding, &conditions);
    }
    check(b"/a.txt", accept_encoding, &conditions);
});

fn check(path: &[u8], accept_encoding: Option<&[u8]>, conditions: &Conditions<'_>) {
    let Lookup::File(entry) = ROOT.with(|root| root.lookup(path, 0)) else { return };
    assert!(!path.to_ascii_lowercase().ends_with(b".php"));
    let plan = plan(&entry, accept_encoding, conditions);
    assert!([200, 206, 304, 412, 416].contains(&plan.status));
    let bytes: u64 = plan.body.iter().map(Part::len).sum();
    assert!(bytes == plan.content_length || (conditions.is_head && bytes == 0));
    assert!(plan.content_length <= TEXT.len() as u64);
    for part in plan.body {
        if let Part::Memory { bytes, range } = part {
            assert_eq!(bytes[range.clone()], TEXT[range]);
        }
    }
}
