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
