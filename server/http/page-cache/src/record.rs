//! The encoding of an entry for storage that outlives the process.
//!
//! Called by the disk tier and the shared tier. Invariant: truncated, mixed or damaged bytes do not
//! decode, because a checksum covers all of them.
//!
//! ```text
//!  magic and version, 8 bytes │ u32 CRC-32 of the rest │ u64 length of the rest │ rest
//! ```

use crate::entry::{Entry, Representation};
use crate::freshness::{Basis, Freshness};
use crate::key::Key;
use crate::storage::Audience;
use crate::vary::Variant;
use outboard_http_semantics::Coding;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"OBpage\x00\x02";
/// The length of what precedes the rest.
const FRAME_BYTES: usize = 8 + 4 + 8;

const BASES: [Basis; 6] = [
    Basis::SharedMaxAge,
    Basis::MaxAge,
    Basis::Expires,
    Basis::Heuristic,
    Basis::DefaultTtl,
    Basis::Nothing,
];
const AUDIENCES: [Audience; 3] =
    [Audience::Anonymous, Audience::Everybody, Audience::EvenAuthorized];

/// Encodes an entry with all of its codings.
pub fn encoded(entry: &Entry) -> Vec<u8> {
    let mut rest = Writer::default();
    rest.bytes(&entry.key.bytes);
    rest.u32(entry.key.path_start);
    rest.u32(entry.status.into());
    write_times(&mut rest, &entry.times);
    for text in entry.variant.raw() {
        rest.bytes(text);
    }
    rest.u32(index_in(&AUDIENCES, entry.audience));
    rest.flags([entry.has_server, entry.may_compress, false, false]);
    rest.u32(entry.tags.len() as u32);
    entry.tags.iter().for_each(|&tag| rest.u64(tag));
    rest.u32(entry.coded.len() as u32);
    for one in std::iter::once(&entry.plain).chain(&entry.coded) {
        rest.u32(one.coding.map_or(0, |coding| index_in(&Coding::ALL, coding) + 1));
        rest.bytes(&one.head);
        rest.bytes(&one.body);
    }
    let mut bytes = Vec::with_capacity(FRAME_BYTES + rest.0.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&checksum(&rest.0).to_le_bytes());
    bytes.extend_from_slice(&(rest.0.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&rest.0);
    bytes
}

/// Decodes the output of [`encoded`]; `None` for anything else.
pub fn decoded(bytes: &[u8]) -> Option<Entry> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    if rest.len() as u64 != u64::from_le_bytes(*length)
        || checksum(rest) != u32::from_le_bytes(*sum)
    {
        return None;
    }
    let mut rest = Reader(rest);
    let key = Key { bytes: rest.bytes()?.into(), path_start: rest.u32()? };
    let status = u16::try_from(rest.u32()?).ok()?;
    let times = read_times(&mut rest)?;
    let variant = Variant::from_raw([rest.bytes()?, rest.bytes()?, rest.bytes()?])?;
    let audience = *AUDIENCES.get(rest.u32()? as usize)?;
    let [has_server, may_compress, ..] = rest.flags()?;
    let tags = (0..rest.u32()?).map(|_| rest.u64()).collect::<Option<_>>()?;
    let more = rest.u32()?;
    let plain = representation(&mut rest)?;
    let coded = (0..more).map(|_| representation(&mut rest)).collect::<Option<_>>()?;
    let entry = Entry {
        key,
        status,
        times,
        variant,
        audience,
        tags,
        has_server,
        may_compress,
        plain,
        coded,
    };
    rest.0.is_empty().then_some(entry)
}

fn representation(rest: &mut Reader<'_>) -> Option<Representation> {
    let coding = match rest.u32()? {
        0 => None,
        index => Some(*Coding::ALL.get(index as usize - 1)?),
    };
    Some(Representation { coding, head: Arc::from(rest.bytes()?), body: Arc::from(rest.bytes()?) })
}

fn write_times(rest: &mut Writer, times: &Freshness) {
    rest.u64(times.received_s);
    rest.u32(times.initial_age_s);
    rest.u32(times.lifetime_s);
    rest.u32(index_in(&BASES, times.basis));
    rest.u32(times.stale_while_revalidate_s);
    rest.u32(times.stale_if_error_s);
    rest.flags([times.always_validate, times.never_stale, times.immutable, false]);
}

fn read_times(rest: &mut Reader<'_>) -> Option<Freshness> {
    let (received_s, initial_age_s, lifetime_s) = (rest.u64()?, rest.u32()?, rest.u32()?);
    let basis = *BASES.get(rest.u32()? as usize)?;
    let (stale_while_revalidate_s, stale_if_error_s) = (rest.u32()?, rest.u32()?);
    let [always_validate, never_stale, immutable, _] = rest.flags()?;
    Some(Freshness {
        received_s,
        initial_age_s,
        lifetime_s,
        basis,
        stale_while_revalidate_s,
        stale_if_error_s,
        always_validate,
        never_stale,
        immutable,
    })
}

fn index_in<T: PartialEq>(all: &[T], one: T) -> u32 {
    all.iter().position(|known| *known == one).expect("the table contains every value") as u32
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn flags(&mut self, flags: [bool; 4]) {
        self.0.extend(flags.map(u8::from));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn u32(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn flags(&mut self) -> Option<[bool; 4]> {
        let (flags, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(flags.map(|flag| flag != 0))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u64()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}
