//! `outboard serve DIR`: finds the document root in an application's directory.

use crate::disk::{Disk, Found};
use std::path::{Path, PathBuf};

/// The public directory of an application, if it has an index.php.
/// `public` goes before an index.php in the application's own directory: what else is in there
/// should not be served.
pub(crate) fn root_of(directory: &Path, disk: &dyn Disk) -> PathBuf {
    let index_in = |directory: &Path| {
        matches!(disk.look(&directory.join("index.php")), Ok(Found::File { .. }))
    };
    let public = directory.join("public");
    if index_in(&public) {
        return public;
    }
    if index_in(directory) {
        return directory.to_owned();
    }
    let others = ["web", "htdocs", "webroot"].map(|name| directory.join(name));
    others.into_iter().find(|directory| index_in(directory)).unwrap_or_else(|| directory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// A disk with these files.
    struct Files(&'static [&'static str]);

    impl Disk for Files {
        fn look(&self, path: &Path) -> io::Result<Found> {
            let path = path.to_str().expect("paths of tests are text");
            match self.0.iter().find_map(|file| file.strip_prefix(path)) {
                Some("") => Ok(Found::File { executable: false }),
                Some(rest) if rest.starts_with('/') => Ok(Found::Directory),
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        }

        fn readable(&self, path: &Path) -> io::Result<()> {
            self.look(path).map(drop)
        }

        fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
            Ok(path.to_owned())
        }

        fn read(&self, _: &Path, _: u64) -> io::Result<Vec<u8>> {
            Ok(Vec::new())
        }

        fn names(&self, _: &Path, _: usize) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn the_public_directory_comes_before_the_own_index_and_others() {
        for (files, expected) in [
            (&["/a/public/index.php", "/a/index.php"][..], "/a/public"),
            (&["/a/index.php", "/a/web/index.php"], "/a"),
            (&["/a/public/app.php", "/a/web/index.php"], "/a/web"),
            (&["/a/webroot/index.php", "/a/htdocs/index.php"], "/a/htdocs"),
            (&["/a/webroot/index.php"], "/a/webroot"),
            (&["/a/index.html"], "/a"),
            (&["/a/public/index.php/x"], "/a"),
            (&[], "/a"),
        ] {
            assert_eq!(root_of(Path::new("/a"), &Files(files)), Path::new(expected), "{files:?}");
        }
    }
}
