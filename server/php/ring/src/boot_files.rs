//! The files that the start of a script has read, as the host lists them for the gateway.
//!
//! The host writes the list to a file without a name ([`encode`]); the gateway reads it, and watches the files.
//! Invariants: decoding checks every length, and returns what was encoded. The host takes a state before the script
//! can read the file, so a file that has another state now may have been read differently.
//!
//! ```text
//!  u8 kind │ u8 exists │ u64 device │ u64 inode │ u64 bytes │ i64 modified_ns │ u32 length │ path
//! ```

use crate::corrupt::Corrupt;
use rustix::fs::{FileType, Stat, lstat, stat};
use std::path::Path;

const TRUNCATED: Corrupt = Corrupt { what: "a list of files is shorter than its lengths say" };

/// The most files of a list.
pub const FILES_MAX: usize = 100_000;
/// The longest list.
pub const LIST_BYTES_MAX: usize = 32 << 20;

/// A file that the start of a script depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootFile<'a> {
    /// Its absolute path, as it was used.
    pub path: &'a [u8],
    /// What was used of it.
    pub kind: Kind,
    /// `None`: it did not exist.
    pub state: Option<State>,
}

/// What a start has used of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Its contents, or that it did not exist.
    Contents = 1,
    /// The names in a directory.
    Listing = 2,
    /// A directory or symbolic link, as a part of paths of other files.
    PathPart = 3,
}

/// By which a change is noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct State {
    /// The file system.
    pub device: u64,
    /// The file on it.
    pub inode: u64,
    /// Its length; 0 for a directory.
    pub bytes: u64,
    /// When it was modified; 0 for a directory that is a part of a path, whose entries come and go.
    pub modified_ns: i64,
}

impl State {
    /// That of a file now; `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be seen: this user may not enter the directory.
    pub fn of(path: &Path, kind: Kind) -> Result<Option<Self>, rustix::io::Errno> {
        use rustix::io::Errno;
        let found = match kind {
            Kind::Contents | Kind::Listing => stat(path),
            Kind::PathPart => lstat(path),
        };
        match found {
            Ok(found) => Ok(Some(Self::from_stat(&found, kind))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn from_stat(found: &Stat, kind: Kind) -> Self {
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        // Its type differs: under Miri it has a sign.
        let nanoseconds = i64::try_from(found.st_mtime_nsec).unwrap_or_default();
        let modified_ns = found.st_mtime.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds);
        let is_timeless = is_directory && kind != Kind::Listing;
        Self {
            device: found.st_dev,
            inode: found.st_ino,
            bytes: if is_directory { 0 } else { found.st_size.cast_unsigned() },
            modified_ns: if is_timeless { 0 } else { modified_ns },
        }
    }
}

/// Appends a file to a list.
pub fn encode(file: &BootFile<'_>, out: &mut Vec<u8>) {
    let at = out.len();
    let state = file.state.unwrap_or_default();
    out.push(file.kind as u8);
    out.push(u8::from(file.state.is_some()));
    out.extend_from_slice(&state.device.to_le_bytes());
    out.extend_from_slice(&state.inode.to_le_bytes());
    out.extend_from_slice(&state.bytes.to_le_bytes());
    out.extend_from_slice(&state.modified_ns.to_le_bytes());
    out.extend_from_slice(&(file.path.len() as u32).to_le_bytes());
    out.extend_from_slice(file.path);
    debug_assert_eq!(decode(&mut &out[at..]), Ok(Some(*file)));
}

/// The next file of a list; `None` at its end.
///
/// # Errors
/// [`Corrupt`] when a length leads out of it or a kind is unknown.
pub fn decode<'a>(rest: &mut &'a [u8]) -> Result<Option<BootFile<'a>>, Corrupt> {
    if rest.is_empty() {
        return Ok(None);
    }
    let kind = match take::<1>(rest)? {
        [1] => Kind::Contents,
        [2] => Kind::Listing,
        [3] => Kind::PathPart,
        _ => return Err(Corrupt { what: "a file of an unknown kind" }),
    };
    let exists = take::<1>(rest)? != [0];
    let state = State {
        device: u64::from_le_bytes(take(rest)?),
        inode: u64::from_le_bytes(take(rest)?),
        bytes: u64::from_le_bytes(take(rest)?),
        modified_ns: i64::from_le_bytes(take(rest)?),
    };
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let (path, tail) = rest.split_at_checked(length).ok_or(TRUNCATED)?;
    *rest = tail;
    Ok(Some(BootFile { path, kind, state: exists.then_some(state) }))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Corrupt> {
    let (head, tail) = rest.split_first_chunk().ok_or(TRUNCATED)?;
    *rest = tail;
    Ok(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [BootFile<'_>; 3] = [
        BootFile {
            path: b"/srv/app/index.php",
            kind: Kind::Contents,
            state: Some(State { device: 1, inode: u64::MAX, bytes: 7, modified_ns: -1 }),
        },
        BootFile { path: b"/srv/app/.env", kind: Kind::Contents, state: None },
        BootFile {
            path: b"/srv/\xff",
            kind: Kind::PathPart,
            state: Some(State { device: 0, inode: 0, bytes: 0, modified_ns: 0 }),
        },
    ];

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let mut list = Vec::new();
        FILES.iter().for_each(|file| encode(file, &mut list));
        let mut rest = &list[..];
        let mut read = Vec::new();
        while let Some(file) = decode(&mut rest).unwrap() {
            read.push(file);
        }
        assert_eq!(read, FILES);
    }

    #[test]
    fn a_list_that_is_cut_is_an_error_unless_it_ends_with_a_file() {
        let mut list = Vec::new();
        encode(&FILES[0], &mut list);
        for length in 1..list.len() {
            assert!(decode(&mut &list[..length]).is_err(), "{length}");
        }
        list[0] = 9;
        assert!(decode(&mut &list[..]).is_err());
    }

    #[test]
    fn the_state_of_a_file_changes_with_it_and_that_of_a_path_does_not() {
        let directory = std::env::temp_dir().join(format!("outboard-state-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let file = directory.join("a.php");
        let of = |path: &Path, kind| State::of(path, kind).unwrap();
        assert_eq!(of(&file, Kind::Contents), None);
        assert_eq!(of(&file.join("below"), Kind::Contents), None);
        let (part, listing) = (of(&directory, Kind::PathPart), of(&directory, Kind::Listing));
        std::fs::write(&file, "1").unwrap();
        let one = of(&file, Kind::Contents);
        assert_eq!(of(&directory, Kind::PathPart), part);
        assert_ne!(of(&directory, Kind::Listing), listing);
        std::fs::write(&file, "12").unwrap();
        assert_ne!(of(&file, Kind::Contents), one);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(of(&directory, Kind::PathPart), None);
    }

    #[test]
    fn a_link_is_itself_as_a_part_of_a_path_and_its_target_otherwise() {
        let directory = std::env::temp_dir().join(format!("outboard-link-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let [link, target, circle] = ["link", "target", "circle"].map(|name| directory.join(name));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        let of = |path: &Path, kind| State::of(path, kind).unwrap();
        assert_eq!(of(&link, Kind::Contents), None, "its target does not exist");
        assert_eq!(of(&circle, Kind::Contents), None);
        let part = of(&link, Kind::PathPart);
        std::fs::write(&target, "text").unwrap();
        assert_eq!(of(&link, Kind::Contents), of(&target, Kind::Contents));
        assert_eq!(of(&link, Kind::PathPart), part);
        assert_ne!(of(&link, Kind::Contents).unwrap().inode, part.unwrap().inode);
        let long = directory.join("x".repeat(300));
        assert_eq!(of(&long, Kind::Contents), None, "no file has such a name");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_files_until_the_first_damage(
            mut list in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..120),
        ) {
            if let Some(kind) = list.first_mut() {
                *kind = 1 + *kind % 3;
            }
            let mut rest = &list[..];
            while let Ok(Some(file)) = decode(&mut rest) {
                let mut again = Vec::new();
                encode(&file, &mut again);
                assert_eq!(decode(&mut &again[..]), Ok(Some(file)));
            }
            assert!(rest.len() <= list.len());
        }
    }
}
