//! The bodies of an app's own error pages, read when the app is opened.
//!
//! Called by [`crate::app`]. Invariant: a page is a regular file that the app's own user may read, on a path
//! without links that PHP may have made to another place; any other is left out, and the built-in page is sent.

use outboard_trusted_path::{self as trusted_path, Users};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Longest page.
const MAX_BYTES: u64 = 16 << 20;

/// The pages by status.
pub(crate) fn read(pages: &BTreeMap<u16, PathBuf>, users: &Users) -> HashMap<u16, Rc<[u8]>> {
    pages.iter().filter_map(|(status, path)| Some((*status, page(path, users)?))).collect()
}

fn page(path: &Path, users: &Users) -> Option<Rc<[u8]>> {
    let opened = trusted_path::open(path, users).ok()?;
    let found = rustix::fs::fstat(&opened.fd).ok()?;
    let is_file = rustix::fs::FileType::from_raw_mode(found.st_mode).is_file();
    if !is_file || users.is_foreign(&found) {
        return None;
    }
    let file = File::open(format!("/proc/self/fd/{}", opened.fd.as_raw_fd())).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes.into())
}
