//! Any path, query and list of entity tags of a request to the entity store: read or refused, and a
//! name that is spelled out byte by byte is always read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_entity_store::is_id;
use outboard_gateway::fuzzing::{are_entity_tags, is_entity_request};

fuzz_target!(|input: (&[u8], &[u8], &[u8])| {
    let (below, query, tags) = input;
    is_entity_request(below, query);
    let spelled: String = query.iter().map(|byte| format!("%{byte:02X}")).collect();
    for path in [&b"/entity"[..], b"/entities"] {
        is_entity_request(path, query);
        let named = format!("id={spelled}&start={spelled}");
        assert_eq!(is_entity_request(path, named.as_bytes()), is_id(query));
    }
    let has_quotes = tags.iter().filter(|byte| **byte == b'"').count() >= 2;
    assert!(!are_entity_tags(tags) || has_quotes || tags.trim_ascii() == b"*");
});
