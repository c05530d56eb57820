//! What the operator may decide about a root. Read by [`crate::Root::open`]; the defaults are the
//! cautious choice everywhere.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which symbolic links below a root are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Symlinks {
    /// None: a path that contains a link is refused.
    Never,
    /// Links whose final target lies inside the root, or inside one of
    /// [`RootOptions::symlink_targets`].
    #[default]
    InsideRoot,
    /// Links anywhere, when the link and what it points to belong to the same user.
    SameOwner,
    /// Every link. Whoever can create a link below the root can publish any file that the gateway
    /// may read.
    Always,
}

/// How a [`crate::Root`] opens, names and remembers files.
#[derive(Debug, Clone)]
pub struct RootOptions {
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// With [`Symlinks::InsideRoot`]: folders outside of the root that links may lead into.
    /// Debian's WordPress and phpMyAdmin need this (`/usr/share/javascript`, `/var/lib/wordpress`).
    pub symlink_targets: Vec<PathBuf>,
    /// Whether every name that begins with a dot is served.
    pub dot_files: bool,
    /// Names with a leading dot that are served anyway. Default: `.well-known` (RFC 8615).
    pub dot_names: Vec<String>,
    /// Suffixes of scripts: such a file is [`crate::Lookup::Script`] and never served.
    /// Compared without regard to case. Default: `.php`, as nginx with php-fpm is usually set up.
    pub php_suffixes: Vec<String>,
    /// Suffixes of PHP sources that are neither run nor served. Default: `.phtml`, `.phar`,
    /// `.phps`, `.pht`, `.php3` to `.php8` and `.inc`: an application that wants one of them run
    /// names it in `php_suffixes`. Copies of a source that editors and archivers leave behind
    /// (`config.php~`, `config.php.bak`, `index.php.gz`) are refused with it.
    pub source_suffixes: Vec<String>,
    /// Whether names of databases, dumps, backups, logs and keys are told apart
    /// ([`crate::Lookup::Private`]).
    pub private_names: bool,
    /// Whether `.br`, `.zst` and `.gz` siblings are offered to clients that accept them. Only text
    /// and similar compressible types are looked at.
    pub precompressed: bool,
    /// Content types by extension (`"wasm" => "application/wasm"`), used verbatim before the
    /// built-in table.
    pub mime_overrides: BTreeMap<String, String>,
    /// A `Cache-Control` value for every file of this root, if any.
    pub cache_control: Option<String>,
    /// How many paths are remembered, found or not. A file above `small_file_bytes` holds a file
    /// descriptor while it is remembered. 0 remembers nothing.
    pub cache_capacity: usize,
    /// Bodies up to this size are kept in memory.
    pub small_file_bytes: u64,
    /// How long a remembered file, folder or script is trusted before the file system is asked
    /// again.
    pub cache_valid_ms: u64,
    /// The same for paths where nothing was found. Shorter, because an application may create the
    /// file that a client just missed.
    pub negative_valid_ms: u64,
}

impl Default for RootOptions {
    fn default() -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            symlinks: Symlinks::default(),
            symlink_targets: Vec::new(),
            dot_files: false,
            dot_names: owned(&[".well-known"]),
            php_suffixes: owned(&[".php"]),
            source_suffixes: owned(&[
                ".phtml", ".phar", ".phps", ".pht", ".php3", ".php4", ".php5", ".php7", ".php8",
                ".inc",
            ]),
            private_names: true,
            precompressed: true,
            mime_overrides: BTreeMap::new(),
            cache_control: None,
            cache_capacity: 1024,
            small_file_bytes: 32 * 1024,
            cache_valid_ms: 1000,
            negative_valid_ms: 250,
        }
    }
}

impl RootOptions {
    /// Options for a folder that an application hands files out of by X-Sendfile or
    /// X-Accel-Redirect: the application has already decided, so dot files, sources and private
    /// names are ordinary files, and it may just have written the file, so what is remembered is
    /// compared with the file system each time. Symbolic links still must not leave the folder.
    pub fn for_sendfile() -> Self {
        Self {
            dot_files: true,
            php_suffixes: Vec::new(),
            source_suffixes: Vec::new(),
            private_names: false,
            cache_valid_ms: 0,
            negative_valid_ms: 0,
            ..Self::default()
        }
    }
}
