//! Operations of workers and their results: any payload is refused or written again as it was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_ring::operation::{Completion, Operation};

fuzz_target!(|payload: &[u8]| {
    if let Ok(operation) = Operation::decode(payload) {
        let mut again = Vec::new();
        operation.encode(&mut again);
        assert_eq!(Operation::decode(&again), Ok(operation));
    }
    if let Ok(completion) = Completion::decode(payload) {
        let mut again = Vec::new();
        completion.encode(&mut again);
        assert_eq!(Completion::decode(&again), Ok(completion));
    }
});
