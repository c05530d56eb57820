//! Reading a segment after the server has gone, however it went.

use super::frame::{self, Entry, MAGIC};
use super::{HEAD_BYTES, SEGMENT_MAGIC};
use std::io;
use std::path::Path;

/// Something in a segment that is not as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Bytes at the end that are no whole frame: a write that the server did not finish.
    Cut {
        /// Where they begin.
        at: u64,
    },
    /// Bytes with whole frames behind them, entries that cannot be, or a segment without its head:
    /// damage.
    Damage {
        /// Where it begins.
        at: u64,
        /// How far it goes.
        bytes: u64,
    },
}

/// Calls `each` with every entry of every whole frame, in order, and tells what else was there.
///
/// # Errors
/// The file cannot be read, or `each` fails.
pub(crate) fn replay<E: From<io::Error>>(
    path: &Path,
    each: impl FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<Vec<Flaw>, E> {
    replay_bytes(&std::fs::read(path)?, each)
}

/// As [`replay`], of what was read.
pub(crate) fn replay_bytes<E>(
    bytes: &[u8],
    mut each: impl FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<Vec<Flaw>, E> {
    let Some(salt) = salt(bytes) else {
        let is_empty = bytes.iter().all(|byte| *byte == 0);
        let whole = Flaw::Damage { at: 0, bytes: bytes.len() as u64 };
        return Ok(if is_empty { Vec::new() } else { vec![whole] });
    };
    let mut flaws = Vec::new();
    let mut at = HEAD_BYTES as usize;
    while at < bytes.len() {
        if let Some((mut entries, len)) = frame::read(&bytes[at..], salt) {
            while let Some(entry) = frame::next_entry(&mut entries) {
                each(entry)?;
            }
            if !entries.is_empty() {
                let (behind, bytes) = (at + len - entries.len(), entries.len());
                flaws.push(Flaw::Damage { at: behind as u64, bytes: bytes as u64 });
            }
            at += len;
            continue;
        }
        match next_whole(bytes, at, salt) {
            Some(next) => {
                flaws.push(Flaw::Damage { at: at as u64, bytes: (next - at) as u64 });
                at = next;
            }
            None => {
                if bytes[at..].iter().any(|byte| *byte != 0) {
                    flaws.push(Flaw::Cut { at: at as u64 });
                }
                break;
            }
        }
    }
    Ok(flaws)
}

fn salt(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..HEAD_BYTES as usize)?;
    let salt = head.strip_prefix(SEGMENT_MAGIC)?;
    Some(u64::from_le_bytes(salt.try_into().ok()?))
}

/// Where the next whole frame begins.
fn next_whole(bytes: &[u8], from: usize, salt: u64) -> Option<usize> {
    let starts = bytes[from..].windows(MAGIC.len()).enumerate();
    starts
        .filter(|(_, window)| **window == MAGIC)
        .map(|(at, _)| from + at)
        .find(|at| frame::read(&bytes[*at..], salt).is_some())
}
