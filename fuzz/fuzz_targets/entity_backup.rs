//! A backup: any bytes are records or an error, what is whole is written again as it was, and a
//! flipped or missing byte is noticed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_entity_store::{
    Record, Restored, read_backup, write_backup_head, write_backup_record,
};
use xxhash_rust::xxh3::xxh3_64;

const VALUE_MAX_BYTES: usize = 2000;

fuzz_target!(|input: (&[u8], Vec<(&[u8], u64, &[u8])>, u16, u8)| {
    let (bytes, records, at, flip) = input;
    check(bytes);
    let sealed = [bytes, &xxh3_64(bytes).to_le_bytes()].concat();
    check(&[&begun()[..], &sealed].concat());

    let restored = |&(id, expires_ms, value): &(&[u8], u64, &[u8])| Restored {
        id: id.to_vec(),
        value: value.to_vec(),
        expires_ms: Some(expires_ms).filter(|ms| *ms != 0),
    };
    let records: Vec<Restored> = records.iter().map(restored).collect();
    let mut backup = written(&records);
    let read: Result<Vec<Restored>, _> = read_backup(&backup[..], VALUE_MAX_BYTES).collect();
    assert_eq!(read.expect("it was just written"), records);

    let at = usize::from(at) % backup.len();
    assert!(read_backup(&backup[..at], VALUE_MAX_BYTES).any(|record| record.is_err()));
    if flip != 0 {
        backup[at] ^= flip;
        assert!(read_backup(&backup[..], VALUE_MAX_BYTES).any(|record| record.is_err()));
    }
});

fn check(bytes: &[u8]) {
    let read: Result<Vec<Restored>, _> = read_backup(bytes, VALUE_MAX_BYTES).collect();
    if let Ok(records) = read {
        assert!(bytes.starts_with(&written(&records)));
    }
}

fn begun() -> Vec<u8> {
    let mut backup = Vec::new();
    write_backup_head(&mut backup);
    backup
}

fn written(records: &[Restored]) -> Vec<u8> {
    let mut backup = begun();
    for Restored { id, value, expires_ms } in records {
        let record = Record { version: 1, expires_ms: *expires_ms, value: value[..].into() };
        write_backup_record(&mut backup, Ok((id, &record)));
    }
    write_backup_record(&mut backup, Err(records.len() as u64));
    backup
}
