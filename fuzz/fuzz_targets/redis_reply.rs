//! Any reply of Redis to the entity store: no panic, and every address in it has a port.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_entity_store::fuzzing::redis_reply;

fuzz_target!(|bytes: &[u8]| redis_reply(bytes));
