//! Any bytes from a Redis server: no panic, the same values in two pieces as in one, and values within
//! the limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_resp::{Error, Limits, Reader, Value};

const LIMITS: Limits = Limits { bytes: 1 << 10, values: 1 << 6 };

fn read(pieces: &[&[u8]]) -> (Vec<Value>, Result<(), Error>) {
    let (mut reader, mut values) = (Reader::new(LIMITS), Vec::new());
    for piece in pieces {
        let mut piece = *piece;
        loop {
            match reader.read(&mut piece) {
                Ok(Some(value)) => values.push(value),
                Ok(None) => break,
                Err(error) => return (values, Err(error)),
            }
        }
        assert!(piece.is_empty());
    }
    (values, Ok(()))
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(values) | Value::Push(values) => {
            values.len() + values.iter().map(count).sum::<usize>()
        }
        _ => 0,
    }
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let (first, second) = bytes.split_at(usize::from(cut) % (bytes.len() + 1));
    let (values, outcome) = read(&[bytes]);
    assert!(values.iter().all(|value| count(value) <= LIMITS.values));
    assert_eq!(read(&[first, second]), (values, outcome));
});
