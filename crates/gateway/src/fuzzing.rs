//! What fuzz targets reach of the parsers here. Compiled for them alone, with `--cfg fuzzing`.

use crate::development::failure;
use crate::entities::Batch;
use crate::entity_api::{Call, Tags};
use crate::response_head::ResponseHead;
use outboard_php_pool::tasks::journal;

/// The names and values that a worker's operation on the entity store speaks of, in bytes.
pub fn kv_batch(asked: &[u8]) -> Option<usize> {
    Some(match Batch::read(asked)? {
        Batch::Reads(ids) => ids.iter().map(|id| id.len()).sum(),
        Batch::Writes(writes) => writes.iter().map(|write| write.id.len()).sum(),
        Batch::Scan { .. } => 0,
    })
}

/// Whether a request to the entity store can be read.
pub fn is_entity_request(below: &[u8], query: &[u8]) -> bool {
    Call::read(below, query).is_ok_and(|call| !call.namespace().is_empty() || !query.is_empty())
}

/// Whether If-Match or If-None-Match can be read.
pub fn are_entity_tags(value: &[u8]) -> bool {
    Tags::read(value).is_ok()
}

/// A record of a task, written again as it was read.
pub fn task_again(record: &[u8]) -> Option<Vec<u8>> {
    journal::again(record)
}

/// The header lines that are passed on of PHP's response head, or of an upstream's.
pub fn passed_on(payload: &[u8], lines: &[u8]) -> [Option<Vec<u8>>; 3] {
    let passed = |head: ResponseHead| head.headers.bytes;
    [
        ResponseHead::read(payload).ok().map(passed),
        ResponseHead::read_interim(payload).map(passed),
        ResponseHead::of_upstream(200, lines).ok().map(passed),
    ]
}

/// What a developer is shown of PHP's words about a request.
pub fn failure_page(words: &str, request: &str) -> String {
    failure::plain(words);
    failure::html(words, request)
}
