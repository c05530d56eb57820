//! The bodies of an app's own error pages, read when the app is opened.
//!
//! Called by [`crate::app`], and for the page of its maintenance. Invariant: a page is a regular file that the app's own user may read, on a path
//! without links that PHP may have made to another place; any other is reported and left out, and the built-in page
//! is sent.

use outboard_trusted_path::{self as trusted_path, Users};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Longest page.
const MAX_BYTES: u64 = 16 << 20;

/// The pages by status; `report` is called for each file that cannot be used.
pub(crate) fn read(
    pages: &BTreeMap<u16, PathBuf>,
    users: &Users,
    report: impl Fn(&str),
) -> HashMap<u16, Rc<[u8]>> {
    // A class of statuses has one file.
    let mut files: HashMap<&Path, Option<Rc<[u8]>>> = HashMap::new();
    let mut body =
        |path| files.entry(path).or_insert_with(|| read_one(path, users, &report)).clone();
    pages.iter().filter_map(|(status, path)| Some((*status, body(path)?))).collect()
}

/// A page; `report` is called if it cannot be used.
pub(crate) fn read_one(path: &Path, users: &Users, report: impl Fn(&str)) -> Option<Rc<[u8]>> {
    page(path, users).map_err(|why| report(&unusable(path, &why))).ok()
}

fn unusable(path: &Path, why: &str) -> String {
    format!("the error page {} cannot be used, the built-in one is: {why}", path.display())
}

fn page(path: &Path, users: &Users) -> Result<Rc<[u8]>, String> {
    let opened = trusted_path::open(path, users).map_err(|refusal| refusal.to_string())?;
    let found = rustix::fs::fstat(&opened.fd).map_err(|error| error.to_string())?;
    if !rustix::fs::FileType::from_raw_mode(found.st_mode).is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if users.is_foreign(&found) {
        return Err("it belongs to the group of another app's user".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(format!("/proc/self/fd/{}", opened.fd.as_raw_fd()))
        .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_page_that_cannot_be_read_is_reported_once() {
        let own = Path::new(file!()).canonicalize().unwrap_or_else(|_| "Cargo.toml".into());
        let own = std::path::absolute(own).unwrap();
        let pages = [(404, own), (500, "/none".into()), (501, "/none".into()), (502, "/".into())];
        let reports = RefCell::new(Vec::new());
        let report = |text: &str| reports.borrow_mut().push(text.to_owned());
        let read = read(&pages.into(), &Users::default(), report);
        assert_eq!(read.keys().collect::<Vec<_>>(), [&404]);
        let [none, directory] = &reports.borrow()[..] else { panic!("{reports:?}") };
        assert!(none.contains("error page /none cannot be used"), "{none}");
        assert!(directory.ends_with("it is not a regular file"), "{directory}");
    }
}
