//! [`Scripts`]: scripts of an app that its settings name.
//!
//! Invariant: a script is a PHP file below the root, which exists when the configuration is read.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw::Php;
use crate::scalar::Fault;
use std::path::Path;

/// The scripts of an app.
pub(super) struct Scripts<'a> {
    pub(super) root: &'a Path,
    pub(super) php: &'a Php,
    /// Whether the worker script answers all paths.
    pub(super) is_worker: bool,
}

impl Scripts<'_> {
    /// The path of a script, which has to exist; in worker mode any path.
    pub(super) fn find(&self, written: &str, place: &[&str], context: &mut Context<'_>) -> String {
        if self.is_worker {
            return format!("/{}", written.trim_start_matches('/'));
        }
        self.find_or(written, place, "write a path such as \"/auth.php\"", context)
    }

    /// The path of a script, which has to exist.
    pub(super) fn find_or(
        &self,
        written: &str,
        place: &[&str],
        hint: &str,
        context: &mut Context<'_>,
    ) -> String {
        let below = written.trim_start_matches('/');
        let runs = self.php.extensions.iter().any(|extension| below.ends_with(extension.as_str()));
        let plain = !below.split('/').any(|segment| matches!(segment, "" | "." | ".."));
        if !runs || !plain {
            let fault = Fault::new(format!("`{written}` is not a PHP script below the root"));
            context.value(place, Kind::BadValue, fault.hint(hint));
        } else if context.disk.look(self.root).is_ok() {
            context.look_for_file(place, format!("/{below}").as_ref(), &self.root.join(below));
        }
        format!("/{below}")
    }
}
