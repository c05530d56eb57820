//! The maintenance of an app: since when clients get a page in its place, and which of them do not.

use super::context::Context;
use super::peers::Peers;
use crate::raw::{self, MaintenanceEntry};
use crate::scalar::PathPattern;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Clone, Debug)]
pub struct Maintenance {
    /// The file that switches it on, absolute; `None`: it is on.
    pub file: Option<PathBuf>,
    /// When clients may try again; at least 1.
    pub retry_after_s: u64,
    /// The page, absolute; `None`: the built-in one.
    pub page: Option<PathBuf>,
    /// Paths of files that are served meanwhile.
    pub assets: Vec<PathPattern>,
    /// The clients that get the app.
    pub allow: Peers,
}

/// `None` if it is off for good.
pub(super) fn maintenance(
    raw: &MaintenanceEntry,
    root: &Path,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<Maintenance> {
    let table = match raw {
        MaintenanceEntry::Switch(false) => return None,
        MaintenanceEntry::Switch(true) => &raw::Maintenance::default(),
        MaintenanceEntry::Table(table) => &**table,
    };
    let at = |key: &'static str| [place, &[key]].concat();
    let page = table.page.as_ref().map(|written| {
        let page = root.join(written.0.trim_start_matches('/'));
        // If the root is missing, only that is reported.
        if context.disk.look(root).is_ok() {
            context.look_for_file(&at("page"), format!("/{}", written.0).as_ref(), &page);
        }
        page
    });
    Some(Maintenance {
        file: table.file.as_ref().map(|file| context.new_file(&at("file"), file)),
        retry_after_s: table.retry_after.0.div_ceil(1_000).max(1),
        page,
        assets: table.assets.clone(),
        allow: Peers::new(&context.peers(&at("allow"), &table.allow)),
    })
}

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, site};
    use crate::{Config, Kind};
    use std::path::{Path, PathBuf};

    #[test]
    fn maintenance_is_off_on_or_switched_by_a_file() {
        assert!(site("").maintenance.is_none());
        assert!(site("maintenance = false").maintenance.is_none());
        let on = site("maintenance = true").maintenance.unwrap();
        assert_eq!((on.file, on.page, on.retry_after_s), (None, None, 300));
        let keys = "[app.site.maintenance]\nfile = \"on.flag\"\nretry_after = \"1500ms\"\n\
                    page = \"/down.html\"\nallow = [\"10.0.0.0/8\"]\n";
        let table = site(keys).maintenance.unwrap();
        assert_eq!(table.file, Some(PathBuf::from("/srv/www/on.flag")));
        assert_eq!(table.page, Some(PathBuf::from("/srv/www/public/down.html")));
        assert_eq!(table.retry_after_s, 2);
        assert!(table.allow.contains(Some([10, 0, 0, 1].into())));
        assert!(!table.allow.contains(Some([11, 0, 0, 1].into())) && !table.allow.contains(None));
    }

    #[test]
    fn unknown_keys_and_networks_are_refused() {
        let table = |line: &str| format!("{APP}[app.site.maintenance]\n{line}\n");
        assert_error(&table("allow = [\"all\"]"), Kind::BadValue, 4, "all");
        assert_error(&table("files = \"on\""), Kind::UnknownKey, 4, "file");
        assert_error(&format!("{APP}maintenance = \"on\"\n"), Kind::WrongType, 3, "maintenance");
    }

    #[test]
    fn a_missing_page_and_directory_are_reported_with_their_place() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "[app.site]\nroot = \"src\"\n[app.site.maintenance]\n\
                    file = \"none/on\"\npage = \"none.html\"\n";
        let errors = Config::parse(text, &directory.join("outboard.toml")).unwrap_err();
        let text = errors.to_string();
        assert!(text.contains("outboard.toml:4:8: there is no directory"), "{text}");
        assert!(text.contains("outboard.toml:5:8: there is no file"), "{text}");
    }

    #[test]
    fn workers_respond_directly_only_without_maintenance() {
        let text = "mode = \"worker\"\nworker.script = \"w.php\"\nworker.direct = true\n\
                    maintenance.file = \"on\"\n";
        assert_error(&format!("{APP}{text}"), Kind::Conflict, 5, "because of `maintenance`");
    }
}
