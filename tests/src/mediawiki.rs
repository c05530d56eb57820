//! Debian's MediaWiki, unmodified, with an SQLite database of its own.

use crate::{App, Scratch};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = "/usr/share/mediawiki";

/// One installation.
#[derive(Debug)]
pub struct MediaWiki {
    scratch: Scratch,
}

impl MediaWiki {
    /// Who may log in.
    pub const ADMIN: &str = "Admin";
    /// And the password.
    pub const PASSWORD: &str = "e2e pass phrase";

    /// Makes the database and the settings by MediaWiki's own installer.
    #[track_caller]
    pub fn install() -> MediaWiki {
        MediaWiki::install_with("")
    }

    /// The same with these lines at the end of its settings.
    #[track_caller]
    pub fn install_with(lines: &str) -> MediaWiki {
        let scratch = Scratch::new("mediawiki");
        let data = scratch.folder("data");
        let output = Command::new("php")
            .arg(Path::new(ROOT).join("maintenance/install.php"))
            .args(["--dbtype=sqlite", "--dbname=wiki", "--scriptpath=", "--server=http://a"])
            .arg(format!("--dbpath={}", data.display()))
            .arg(format!("--pass={}", Self::PASSWORD))
            .arg(format!("--confpath={}", scratch.path().display()))
            .args(["Cached", Self::ADMIN])
            .output()
            .expect("PHP's command line is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        for file in fs::read_dir(&data).expect("it was made").flatten() {
            let mode = if file.path().is_dir() { 0o777 } else { 0o666 };
            fs::set_permissions(file.path(), Permissions::from_mode(mode)).expect("it is ours");
        }
        let wiki = MediaWiki { scratch };
        let settings = fs::read_to_string(wiki.settings()).expect("the installer wrote them");
        // The tests' ports are not known before.
        let server = "$wgServer = 'http://' . $_SERVER['HTTP_HOST'];\n";
        wiki.scratch.file("LocalSettings.php", settings + server + lines);
        fs::set_permissions(wiki.settings(), Permissions::from_mode(0o644)).expect("it is ours");
        wiki
    }

    fn settings(&self) -> PathBuf {
        self.scratch.path().join("LocalSettings.php")
    }

    /// What to serve.
    pub fn app(&self) -> App {
        let mut app = App::at(ROOT).workers(3);
        app.env.push(("MW_CONFIG_FILE".to_owned(), self.settings().display().to_string()));
        app
    }
}
