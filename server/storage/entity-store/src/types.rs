//! What every engine of a namespace returns.

use crate::record::Record;

/// Some records of a scan, in the order of their keys.
pub type Piece = Vec<(Box<[u8]>, Record)>;

/// Statistics of a namespace; counters start with the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records, including expired ones that are not removed yet; an estimate on disk.
    pub records: u64,
    /// Sorted files.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// Bytes in memory that are only in the journal.
    pub buffered_bytes: u64,
    /// Cached records, including absent ones.
    pub cached_records: u64,
    /// Their bytes.
    pub cached_bytes: u64,
    /// Committed writes.
    pub writes: u64,
    /// Commits.
    pub commits: u64,
    /// Writes that were rejected or dropped because too many waited.
    pub writes_refused: u64,
    /// Waiting writes.
    pub writes_waiting: u64,
    /// Reads that were not in memory.
    pub reads_from_disk: u64,
    /// Reads that were rejected or dropped because too many waited.
    pub reads_refused: u64,
    /// Waiting reads.
    pub reads_waiting: u64,
    /// Files with a wrong checksum.
    pub damaged: Vec<String>,
    /// Messages about damage from when the namespace was opened.
    pub findings: Vec<String>,
}
