//! The parsers of the gateway, for fuzz targets. Compiled with `--cfg fuzzing` only.

use crate::entity_api::{Call, Tags};
use crate::response_head::ResponseHead;
use outboard_php_pool::tasks::journal;

pub use outboard_stream_server::framing;

/// Whether a request to the entity store is valid.
pub fn is_entity_request(below: &[u8], query: &[u8]) -> bool {
    Call::read(below, query).is_ok_and(|call| !call.namespace().is_empty() || !query.is_empty())
}

/// Whether If-Match or If-None-Match is valid.
pub fn are_entity_tags(value: &[u8]) -> bool {
    Tags::read(value).is_ok()
}

/// A record of a task, decoded and encoded again.
pub fn task_again(record: &[u8]) -> Option<Vec<u8>> {
    journal::reencode(record)
}

/// The header lines of a response head of PHP, or of an upstream, that are passed on.
pub fn passed_on(payload: &[u8], lines: &[u8]) -> [Option<Vec<u8>>; 3] {
    let passed = |head: ResponseHead| head.headers.bytes;
    [
        ResponseHead::read(payload).ok().map(passed),
        ResponseHead::read_interim(payload).map(passed),
        ResponseHead::of_upstream(200, lines).ok().map(passed),
    ]
}
