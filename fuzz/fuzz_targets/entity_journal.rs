//! A segment of the journal: of any bytes nothing is believed that is not there, what was written is
//! read back, and damage of a byte costs the frame that it is in and no other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_entity_store::fuzzing::{Entry, record_again, replayed};
use outboard_entity_store::{Record, is_id};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Name, version, and end and value unless it is a delete.
type Write<'a> = (&'a [u8], u64, Option<(u64, &'a [u8])>);

const SALT: u64 = 0x5eed_0fa5_a17e_d000;
const HEAD_BYTES: usize = 16;

fuzz_target!(|input: (&[u8], Vec<Vec<Write>>, u16, u8)| {
    let (bytes, frames, at, flip) = input;
    believes_nothing_more(bytes);
    believes_nothing_more(&[&head()[..], bytes].concat());
    believes_nothing_more(&[&head()[..], &frame(bytes), bytes].concat());
    if let Some(again) = record_again(bytes) {
        assert_eq!(again, bytes);
    }

    let mut segment = head();
    let mut places = Vec::new();
    for writes in &frames {
        let sealed = frame(&writes.iter().flat_map(encoded).collect::<Vec<u8>>());
        places.push(segment.len()..segment.len() + sealed.len());
        segment.extend(sealed);
    }
    if !frames.iter().flatten().all(|(id, ..)| is_id(id)) {
        return;
    }
    let all: Vec<Vec<Entry>> =
        frames.iter().map(|writes| writes.iter().map(entry).collect()).collect();
    // Room that was reserved and never used is no flaw.
    let reserved = [&segment[..], &[0; 64]].concat();
    assert_eq!(replayed(&reserved), (all.concat(), vec![]));

    let damaged = HEAD_BYTES + usize::from(at) % segment.len();
    if flip != 0 && damaged < segment.len() {
        segment[damaged] ^= flip;
        let whole = all.iter().zip(places).filter(|(_, place)| !place.contains(&damaged));
        let expected: Vec<Entry> = whole.flat_map(|(entries, _)| entries.clone()).collect();
        assert_eq!(replayed(&segment).0, expected);
    }
});

fn believes_nothing_more(segment: &[u8]) {
    let (entries, flaws) = replayed(segment);
    let value = |record: &Option<Record>| record.as_ref().map_or(0, |record| record.value.len());
    let bytes: usize = entries.iter().map(|(id, _, record)| 25 + id.len() + value(record)).sum();
    assert!(bytes <= segment.len());
    assert!(flaws.iter().all(|at| *at as usize <= segment.len()));
}

fn head() -> Vec<u8> {
    [&b"OBENTJ1\n"[..], &SALT.to_le_bytes()].concat()
}

fn frame(entries: &[u8]) -> Vec<u8> {
    let sum = xxh3_64_with_seed(entries, SALT ^ entries.len() as u64).to_le_bytes();
    [b"ENTB", &(entries.len() as u32).to_le_bytes()[..], &sum, entries].concat()
}

fn encoded((id, version, becomes): &Write<'_>) -> Vec<u8> {
    let (expires_ms, value) = becomes.unwrap_or_default();
    let lengths = [id.len() as u32, value.len() as u32].map(u32::to_le_bytes).concat();
    let kind = [if becomes.is_some() { 1 } else { 2 }];
    [&kind[..], &version.to_le_bytes(), &expires_ms.to_le_bytes(), &lengths, id, value].concat()
}

fn entry((id, version, becomes): &Write<'_>) -> Entry {
    let record = becomes.map(|(expires_ms, value)| Record {
        version: *version,
        expires_ms: Some(expires_ms).filter(|ms| *ms != 0),
        value: value.into(),
    });
    (id.to_vec(), *version, record)
}
