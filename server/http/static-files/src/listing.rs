//! [`UnreadListing`]: the names in a directory that a visitor may request.
//!
//! Returned by [`crate::Root::listing`], to be run by another thread: a directory is on a disk. Invariant: a name whose file
//! would not be served as it is (a script, a source, a private file, a dot name, what `.htaccess` restricts, a link that the
//! policy does not follow) is not in a listing.

use std::sync::Arc;

use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;

use crate::htaccess::Restriction;
use crate::lookup::relative;
use crate::resolve::Resolver;
use crate::rules::EntryRules;
use crate::source::NameKind;

/// A directory with more names is listed in part: its page would be of no use.
const MAX_NAMES: usize = 10_000;

/// See the module.
#[derive(Debug)]
pub struct UnreadListing {
    pub(crate) path: Box<[u8]>,
    pub(crate) resolver: Resolver,
    pub(crate) rules: Arc<EntryRules>,
}

/// A file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its name, without a slash.
    pub name: Vec<u8>,
    /// Its path below the root without links, if a link has led to another one.
    pub real: Option<Vec<u8>>,
    /// Its size; `None` for a directory.
    pub bytes: Option<u64>,
    /// When it was modified, in seconds since 1970.
    pub modified_unix_s: u64,
}

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// Directories first, then by name.
    pub files: Vec<ListedFile>,
    /// Whether the directory has more names than are listed.
    pub is_partial: bool,
}

impl UnreadListing {
    /// Reads the directory, and waits for the disk.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn run(self) -> Result<Listing, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match relative(&self.path) {
            b"" => b".",
            below => below,
        };
        if !self.admits(relative(&self.path)) {
            return Err(Errno::ACCESS);
        }
        let opened = self.resolver.open(directory, flags).map_err(|_| Errno::ACCESS)?;
        let mut listing = Listing::default();
        for (index, entry) in Dir::read_from(opened)?.enumerate() {
            if index == MAX_NAMES {
                listing.is_partial = true;
                break;
            }
            let name = entry?.file_name().to_bytes().to_vec();
            listing.files.extend(self.listed(name));
        }
        listing
            .files
            .sort_by(|a, b| (a.bytes.is_some(), &a.name).cmp(&(b.bytes.is_some(), &b.name)));
        Ok(listing)
    }

    /// The entry of a name; `None` if no visitor gets it.
    fn listed(&self, name: Vec<u8>) -> Option<ListedFile> {
        let is_dot = name.starts_with(b".") && !self.rules.serves_dot_name(&name);
        if is_dot || name == b"." || name == b".." {
            return None;
        }
        let path = [relative(&self.path), &name].concat();
        let (handle, real) = self.resolver.open_handle(&path).ok()?;
        let stat = rustix::fs::fstat(handle).ok()?;
        let bytes = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let paths = std::iter::once(&path[..]).chain(real.as_deref().map(relative));
                paths.into_iter().all(|path| self.admits(path)).then_some(())?;
                None
            }
            FileType::RegularFile => {
                let paths = std::iter::once(&path[..]).chain(real.as_deref().map(relative));
                paths.into_iter().all(|path| self.is_served(path)).then_some(())?;
                Some(stat.st_size.cast_unsigned())
            }
            _ => return None,
        };
        if real.as_ref().is_some_and(|real| self.rules.has_dot_name(real)) {
            return None;
        }
        let modified_unix_s = stat.st_mtime.max(0).cast_unsigned();
        Some(ListedFile { name, real, bytes, modified_unix_s })
    }

    /// Whether no `.htaccess` restricts a directory as a whole.
    fn admits(&self, directory: &[u8]) -> bool {
        let directory = directory.strip_suffix(b"/").unwrap_or(directory);
        let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        let any = [directory, slash, b"any"].concat();
        self.rules.restriction(&self.resolver, &any) == Ok(Restriction::None)
    }

    /// Whether the file at a path, which is relative to the root, is sent as it is.
    fn is_served(&self, path: &[u8]) -> bool {
        let name = memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..]);
        self.rules.names.classify(name) == NameKind::Plain
            && self.rules.restriction(&self.resolver, path) == Ok(Restriction::None)
    }
}

#[cfg(test)]
mod tests {
    use crate::scratch::Scratch;
    use crate::{Root, RootOptions};

    #[test]
    fn only_what_a_visitor_gets_is_listed() {
        let scratch = Scratch::new();
        for name in
            ["b.txt", "a.zip", ".env", "run.php", "copy.php.bak", "dump.sql", "b/x", "secret.txt"]
        {
            scratch.file(name, name);
        }
        scratch.file(".htaccess", "<Files secret.txt>\nRequire all denied\n</Files>\n");
        std::os::unix::fs::symlink("/etc/hostname", scratch.path().join("outside")).unwrap();
        std::os::unix::fs::symlink("run.php", scratch.path().join("linked.txt")).unwrap();
        std::os::unix::fs::symlink("b.txt", scratch.path().join("c.txt")).unwrap();
        scratch.file("closed/x", "x");
        scratch.file("closed/.htaccess", "Require all denied\n");
        let root = Root::open(scratch.path(), RootOptions::default()).unwrap();
        assert!(root.listing(b"/closed/").run().is_err());
        let listing = root.listing(b"/").run().unwrap();
        let names: Vec<_> = listing.files.iter().map(|file| (&file.name[..], file.bytes)).collect();
        let expected: [(&[u8], Option<u64>); 4] =
            [(b"b", None), (b"a.zip", Some(5)), (b"b.txt", Some(5)), (b"c.txt", Some(5))];
        assert_eq!(names, expected);
        assert_eq!(listing.files[3].real.as_deref(), Some(&b"/b.txt"[..]));
        assert!(!listing.is_partial && root.listing(b"/none/").run().is_err());
        assert!(root.listing(b"/b/").run().is_ok_and(|listing| listing.files.len() == 1));
    }
}
