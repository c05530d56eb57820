//! Replay of a segment at start, also after a crash.

use super::frame::{self, Entry, MAGIC};
use super::segment;
use std::io;
use std::path::Path;

/// A part of a segment that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// An incomplete frame at the end: the server stopped during a write.
    Truncated {
        /// The offset.
        at: u64,
    },
    /// Damage: bytes in front of whole frames, impossible entries, or a segment without a head.
    Damage {
        /// The offset.
        at: u64,
        /// The length.
        bytes: u64,
    },
}

/// Calls `each` with every entry of every whole frame, in order, and returns the parts that cannot
/// be read.
///
/// # Errors
/// The file cannot be read, or `each` fails.
pub(crate) fn replay<E: From<io::Error>>(
    path: &Path,
    each: impl FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<Vec<Flaw>, E> {
    replay_bytes(&std::fs::read(path)?, each)
}

/// Like [`replay`], for the content of a file.
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
    let mut at = segment::HEAD_BYTES as usize;
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
                    flaws.push(Flaw::Truncated { at: at as u64 });
                }
                break;
            }
        }
    }
    Ok(flaws)
}

fn salt(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..segment::HEAD_BYTES as usize)?;
    let salt = head.strip_prefix(segment::MAGIC)?;
    Some(u64::from_le_bytes(salt.try_into().ok()?))
}

/// The offset of the next whole frame.
fn next_whole(bytes: &[u8], from: usize, salt: u64) -> Option<usize> {
    let starts = bytes[from..].windows(MAGIC.len()).enumerate();
    starts
        .filter(|(_, window)| **window == MAGIC)
        .map(|(at, _)| from + at)
        .find(|at| frame::read(&bytes[*at..], salt).is_some())
}
