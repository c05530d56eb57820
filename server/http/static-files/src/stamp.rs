//! The identity of a file's content at one moment, from stat(2). Equal stamps mean equal bytes; entries
//! are validated with stamps, and ETags are derived from them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat};

/// A file that changed less than this before it was read may change again without a new timestamp:
/// kernels without fine-grained timestamps count in ticks of up to 10 ms.
const TICK_MS: u64 = 20;

/// Device, inode, size and times of a file. It includes the change time because, unlike the
/// modification time, it cannot be set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: Time,
    changed: Time,
}

/// A timestamp of the file system: seconds since the epoch, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Time {
    pub(crate) s: i64,
    ns: u64,
}

impl Stamp {
    /// The stamp of a regular file; `None` for everything else.
    pub(crate) fn of_file(stat: &Stat) -> Option<Self> {
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        Some(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).ok()?,
            modified: Time { s: stat.st_mtime, ns: stat.st_mtime_nsec },
            changed: Time { s: stat.st_ctime, ns: stat.st_ctime_nsec },
        })
    }

    /// Whether the content can no longer change without a new stamp.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        self.changed
            .to_system()
            .is_some_and(|changed| now >= changed + Duration::from_millis(TICK_MS))
    }

    /// A hash of the stamp. Scanners report a readable inode number in an ETag as a leak
    /// (CVE-2003-1418).
    pub(crate) fn digest(&self) -> u64 {
        [
            self.inode,
            self.size,
            self.modified.s as u64,
            self.modified.ns,
            self.changed.s as u64,
            self.changed.ns,
        ]
        .iter()
        .fold(self.device, |hash, field| mix(hash ^ field))
    }
}

impl Time {
    /// `None` before the epoch.
    pub(crate) fn to_system(self) -> Option<SystemTime> {
        let seconds = u64::try_from(self.s).ok()?;
        UNIX_EPOCH.checked_add(Duration::new(seconds, u32::try_from(self.ns).ok()?))
    }
}

/// One round of the splitmix64 generator: a cheap bijection with good avalanche.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
