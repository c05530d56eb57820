use super::*;
use outboard_ring::control::{Rlimits, Xdebug};
use std::collections::BTreeMap;

struct Home(PathBuf);

impl Home {
    /// A directory with these files; names that end with a slash are directories.
    fn with(name: &str, entries: &[&str]) -> Self {
        let home = std::env::temp_dir().join(format!("outboard-ini-{}-{name}", std::process::id()));
        for entry in entries {
            let path = home.join(entry);
            let directory = if entry.ends_with('/') { &path } else { path.parent().unwrap() };
            std::fs::create_dir_all(directory).unwrap();
            if !entry.ends_with('/') {
                std::fs::write(&path, "").unwrap();
            }
        }
        Self(home)
    }

    fn files(&self, settings: &HostSettings) -> (Option<PathBuf>, Option<PathBuf>) {
        let found = IniFiles::below(&self.0, settings);
        (found.file.map(Cow::into_owned), found.scan_dir.map(Cow::into_owned))
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.0.join(name))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn settings() -> HostSettings {
    HostSettings {
        app: "test".into(),
        document_root: "/".into(),
        sapi_name: "fpm-fcgi".into(),
        ini_file: None,
        ini_scan_dir: None,
        ini: BTreeMap::new(),
        fixed_ini: BTreeMap::new(),
        env: BTreeMap::new(),
        run_as: None,
        no_new_privileges: true,
        dumpable: false,
        background_programs: false,
        sandbox: None,
        control_group: None,
        rlimits: Rlimits::default(),
        worker: None,
        xdebug: Xdebug::Never,
    }
}

#[test]
fn php_fpm_s_files_are_taken_unless_there_are_our_own() {
    let home = Home::with("fpm", &["fpm/php.ini", "fpm/conf.d/"]);
    assert_eq!(home.files(&settings()), (home.path("fpm/php.ini"), home.path("fpm/conf.d")));
    let home =
        Home::with("own", &["fpm/php.ini", "fpm/conf.d/", "outboard/php.ini", "outboard/conf.d/"]);
    let own = (home.path("outboard/php.ini"), home.path("outboard/conf.d"));
    assert_eq!(home.files(&settings()), own);
}

#[test]
fn our_own_php_ini_goes_together_with_php_fpm_s_extensions() {
    let home = Home::with("mixed", &["fpm/php.ini", "fpm/conf.d/", "outboard/php.ini"]);
    let mixed = (home.path("outboard/php.ini"), home.path("fpm/conf.d"));
    assert_eq!(home.files(&settings()), mixed);
}

#[test]
fn without_either_the_engine_looks_by_itself() {
    let home = Home::with("none", &["embed/php.ini", "embed/conf.d/"]);
    assert_eq!(home.files(&settings()), (None, None));
}

#[test]
fn a_named_file_is_used_and_the_environment_is_left_to_the_engine() {
    let home = Home::with("named", &["fpm/php.ini", "fpm/conf.d/"]);
    let named = HostSettings { ini_file: Some("/x/php.ini".into()), ..settings() };
    assert_eq!(home.files(&named), (Some("/x/php.ini".into()), home.path("fpm/conf.d")));
    let named = HostSettings { ini_scan_dir: Some("/x/conf.d".into()), ..settings() };
    assert_eq!(home.files(&named), (home.path("fpm/php.ini"), Some("/x/conf.d".into())));
    let env = ["PHPRC", "PHP_INI_SCAN_DIR"].map(|name| (name.to_owned(), "/y".to_owned()));
    let named = HostSettings { env: env.into(), ..settings() };
    assert_eq!(home.files(&named), (None, None));
}
