//! Any bytes as a task that was written down: none, or one that is written again as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_gateway::fuzzing::task_again;

fuzz_target!(|record: &[u8]| {
    assert!(task_again(record).is_none_or(|again| again == record));
});
