//! What is served, and where it can be visited: the two sides of every comparison.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// An application to serve, in terms that nginx + php-fpm and Outboard both understand.
#[derive(Clone, Debug)]
pub struct App {
    /// The document root.
    pub root: PathBuf,
    /// Settings of php.ini, as they are written there; they go before the tests' own defaults.
    pub ini: Vec<(String, String)>,
    /// Environment variables of PHP.
    pub env: Vec<(String, String)>,
    /// URL prefixes for `X-Accel-Redirect`, with a slash at the end, and the folders behind them.
    pub accel: Vec<(String, PathBuf)>,
    /// URL prefixes that are answered with 404 or 403.
    pub deny: Vec<String>,
    /// PHP processes.
    pub workers: usize,
    /// The script that Outboard boots once, with isolation by rewind.
    pub rewound: Option<PathBuf>,
}

/// php.ini of every test: Debian's production values as far as they can be seen from outside.
/// `opcache.file_update_protection` is 0, or a fixture just written would not be cached.
const INI: &[(&str, &str)] = &[
    ("variables_order", "GPCS"),
    ("request_order", "GP"),
    ("register_argc_argv", "Off"),
    ("output_buffering", "4096"),
    ("display_errors", "Off"),
    ("log_errors", "On"),
    ("html_errors", "On"),
    ("error_reporting", "E_ALL & ~E_DEPRECATED & ~E_STRICT"),
    ("max_execution_time", "30"),
    ("max_input_time", "60"),
    ("memory_limit", "128M"),
    ("post_max_size", "32M"),
    ("upload_max_filesize", "24M"),
    ("max_file_uploads", "20"),
    ("max_input_vars", "1000"),
    ("session.gc_probability", "0"),
    ("opcache.enable", "1"),
    ("opcache.file_update_protection", "0"),
    ("opcache.revalidate_freq", "0"),
];

impl App {
    /// An application in this folder, with two workers.
    pub fn at(root: impl Into<PathBuf>) -> App {
        App {
            root: root.into(),
            ini: Vec::new(),
            env: Vec::new(),
            accel: Vec::new(),
            deny: Vec::new(),
            workers: 2,
            rewound: None,
        }
    }

    /// Adds a setting of php.ini.
    pub fn ini(mut self, name: &str, value: &str) -> App {
        self.ini.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> App {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets `X-Accel-Redirect: PREFIX…` send files of this folder.
    pub fn accel(mut self, prefix: &str, folder: impl Into<PathBuf>) -> App {
        self.accel.push((prefix.to_owned(), folder.into()));
        self
    }

    /// Keeps a URL prefix from visitors.
    pub fn deny(mut self, prefix: &str) -> App {
        self.deny.push(prefix.to_owned());
        self
    }

    /// Sets the number of PHP processes.
    pub fn workers(mut self, workers: usize) -> App {
        self.workers = workers;
        self
    }

    /// Has Outboard boot this script of the root once and rewind it after each request, every time compared
    /// with the snapshot. php-fpm serves the application as ever.
    pub fn rewound(mut self, script: &str) -> App {
        self.rewound = Some(self.root.join(script));
        self.verified()
    }

    /// Has each rewind compared with the snapshot, for an application in classic mode that takes one.
    pub fn verified(self) -> App {
        self.env("OUTBOARD_VERIFY_REWIND", "1")
    }

    /// [`App::rewound`] for an application that is not to be changed: it boots nothing, and a rewind undoes all that any
    /// script of it does.
    pub fn rewound_entirely(self) -> App {
        self.rewound(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/rewound/any.php"))
    }

    /// The text of php.ini; folders for uploads and sessions belong to the server that reads it.
    pub(crate) fn php_ini(&self, uploads: &Path, sessions: &Path) -> String {
        let mut text = String::from("[PHP]\n");
        for (name, value) in INI {
            text.push_str(&format!("{name} = {value}\n"));
        }
        text.push_str(&format!("upload_tmp_dir = {}\n", uploads.display()));
        text.push_str(&format!("session.save_path = {}\n", sessions.display()));
        for (name, value) in &self.ini {
            text.push_str(&format!("{name} = {value}\n"));
        }
        text
    }
}

/// A server that serves an [`App`].
pub trait Site: Send + Sync {
    /// What it is, for messages.
    fn name(&self) -> &str;
    /// Where it listens.
    fn address(&self) -> SocketAddr;
    /// The ports that texts may show: those of the site and of what stands in front of it.
    fn ports(&self) -> Vec<u16> {
        vec![self.address().port()]
    }
    /// Everything its processes have written, PHP's error log included.
    fn log(&self) -> String;
    /// How often workers were rewound.
    fn rewinds(&self) -> u64 {
        0
    }
}

/// The unprivileged user that servers run PHP as when the tests run as root.
pub(crate) fn php_user() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("www-data")
}

/// The folder of ini files that load PHP's extensions: Debian's, or `OUTBOARD_TEST_INI_SCAN_DIR` where the
/// host has another PHP (ci/test-php).
pub(crate) fn ini_scan_dir() -> String {
    let own = std::env::var("OUTBOARD_TEST_INI_SCAN_DIR");
    own.unwrap_or_else(|_| "/etc/php/8.2/fpm/conf.d".to_owned())
}
