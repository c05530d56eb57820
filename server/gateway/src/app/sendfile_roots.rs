//! [`SendfileRoots`]: directories whose files a script may have the gateway send.
//!
//! Opened with the app, for `X-Sendfile` and `X-Accel-Redirect`.

use outboard_config as config;
use outboard_static_files::{Root, RootError, RootOptions};
use outboard_trusted_path::Users;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct SendfileRoots {
    /// By absolute path.
    pub(crate) disk: Vec<(PathBuf, Root)>,
    /// By URL prefix.
    pub(crate) accel: Vec<(String, Root)>,
}

impl SendfileRoots {
    /// Opens the app's root, and the directories that it names.
    pub(super) fn open(app: &config::App, users: &Arc<Users>) -> Result<Self, RootError> {
        let root = |path: &Path| Root::open(path, RootOptions::for_sendfile(users.clone()));
        let mut disk = vec![(app.root.clone(), root(&app.root)?)];
        for path in &app.sendfile.roots {
            disk.push((path.clone(), root(path)?));
        }
        let mut accel = Vec::new();
        for (prefix, path) in &app.sendfile.accel {
            accel.push((prefix.clone(), root(path)?));
        }
        // The longest prefix decides, as with apps.
        accel.sort_by_key(|(prefix, _)| Reverse(prefix.len()));
        Ok(Self { disk, accel })
    }
}
