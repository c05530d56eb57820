//! Any bytes as the start of a connection of a proxy: no panic, no more bytes than needed are read, and
//! addresses that are written are read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http_server::proxy_protocol::{MAX_BYTES, Step, read, write_v2};

fuzz_target!(|input: &[u8]| {
    let mut length = 0;
    loop {
        match read(&input[..length]) {
            Ok(Step::Need(needed)) => {
                assert!(needed > length && needed <= MAX_BYTES);
                if needed > input.len() {
                    return;
                }
                length = needed;
            }
            Ok(Step::Complete(Some(addresses))) => {
                let mut header = Vec::new();
                write_v2(&mut header, &addresses);
                let Ok(Step::Complete(Some(again))) = read(&header) else { panic!("{addresses:?}") };
                assert_eq!(again.source.ip().to_canonical(), addresses.source.ip().to_canonical());
                return;
            }
            Ok(Step::Complete(None)) | Err(_) => return,
        }
    }
});
