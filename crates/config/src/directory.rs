//! `outboard serve DIR`: finds the document root in an application's directory.

use crate::disk::{Disk, Found};
use std::path::{Path, PathBuf};

/// Folders that applications keep their public files in, when they hold an index.php.
/// `public` goes before an index.php in the application's own folder: what else is in there
/// should not be served.
pub(crate) fn root_of(folder: &Path, disk: &dyn Disk) -> PathBuf {
    let index_in =
        |folder: &Path| matches!(disk.look(&folder.join("index.php")), Ok(Found::File { .. }));
    let public = folder.join("public");
    if index_in(&public) {
        return public;
    }
    if index_in(folder) {
        return folder.to_owned();
    }
    let others = ["web", "htdocs", "webroot"].map(|name| folder.join(name));
    others.into_iter().find(|folder| index_in(folder)).unwrap_or_else(|| folder.to_owned())
}
