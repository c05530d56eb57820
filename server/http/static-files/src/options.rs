//! The options of a root, which the configuration fills and [`crate::Root::open`] reads. Every default
//! is the cautious choice.

use outboard_trusted_path::Users;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::compressed_files::CompressedFiles;

/// Symbolic links to follow. The names and descriptions are those of the configuration
/// key, whose reference is generated from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Symlinks {
    /// Only links with a target inside the root or `symlink_targets`.
    #[default]
    #[serde(rename = "never")]
    InsideRoot,
    /// Only links whose target has the same owner as the link.
    #[serde(rename = "owner")]
    SameOwner,
    /// All.
    // A user who can create a link below the root can publish any file that the server may read.
    #[serde(rename = "always")]
    Always,
}

/// How a [`crate::Root`] opens, classifies and caches files.
#[derive(Debug, Clone)]
pub struct RootOptions {
    /// Symbolic links to follow.
    pub symlinks: Symlinks,
    /// With [`Symlinks::InsideRoot`]: directories outside of the root that links may lead into.
    /// Debian's WordPress and phpMyAdmin need this (`/usr/share/javascript`, `/var/lib/wordpress`).
    pub symlink_targets: Vec<PathBuf>,
    /// Whether the restrictions of `.htaccess` files are honored.
    pub htaccess: bool,
    /// The users that PHP runs as: links that they may have made do not replace the root, and what is private
    /// to other apps is not served.
    pub users: Arc<Users>,
    /// Whether a link in the root's own path is followed once: what belongs to the files changes later, together
    /// with the root.
    pub is_pinned: bool,
    /// Whether every name that begins with a dot is served.
    pub dot_files: bool,
    /// Names with a leading dot that are always served. Default: `.well-known` (RFC 8615).
    pub allow_dotfiles: Vec<String>,
    /// Suffixes of scripts in any case: such a file is [`crate::Lookup::Script`] and never served.
    /// Default: `.php`, as nginx with php-fpm is usually configured.
    pub php_suffixes: Vec<String>,
    /// Suffixes of PHP sources that are neither run nor served. Default: `.phtml`, `.phar`,
    /// `.phps`, `.pht`, `.php3` to `.php8` and `.inc`; those that an application runs are named in
    /// `php_suffixes`. Copies of a source by editors and archivers (`config.php~`, `config.php.bak`,
    /// `index.php.gz`) are refused as well.
    pub source_suffixes: Vec<String>,
    /// Whether names of databases, dumps, backups, logs and keys are [`crate::Lookup::Private`].
    pub private_names: bool,
    /// Whether `.br`, `.zst` and `.gz` siblings of compressible files are sent to clients that accept
    /// them.
    pub precompressed: bool,
    /// Where compressible files that have no sibling for the client are kept compressed; `None`: they are
    /// sent as they are.
    pub compressed_files: Option<Arc<CompressedFiles>>,
    /// Content types by lower-case extension without the dot (`"wasm" => "application/wasm"`), which
    /// precede the built-in table.
    pub mime_overrides: BTreeMap<String, String>,
    /// Headers of every response with a file of this root, 304 included, such as `Cache-Control`.
    pub headers: BTreeMap<&'static str, String>,
    /// The most paths that are cached, found or not; 0 disables the cache. A cached file above
    /// `small_file_bytes` holds a file descriptor.
    pub cache_capacity: usize,
    /// Bodies up to this size are cached in memory.
    pub small_file_bytes: u64,
    /// How long a cached file, directory or script is used before it is compared with the file system.
    pub cache_valid_ms: u64,
    /// The same for paths that were not found. Shorter, because an application may create the file
    /// that a client just missed.
    pub negative_valid_ms: u64,
}

impl Default for RootOptions {
    fn default() -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            symlinks: Symlinks::default(),
            symlink_targets: Vec::new(),
            htaccess: true,
            users: Arc::default(),
            is_pinned: false,
            dot_files: false,
            allow_dotfiles: owned(&[".well-known"]),
            php_suffixes: owned(&[".php"]),
            source_suffixes: owned(&[
                ".phtml", ".phar", ".phps", ".pht", ".php3", ".php4", ".php5", ".php7", ".php8",
                ".inc",
            ]),
            private_names: true,
            precompressed: true,
            compressed_files: None,
            mime_overrides: BTreeMap::new(),
            headers: BTreeMap::new(),
            cache_capacity: 1024,
            small_file_bytes: 32 * 1024,
            cache_valid_ms: 1000,
            negative_valid_ms: 250,
        }
    }
}

impl RootOptions {
    /// Compares each cached file with the file system on every request, instead of once in a while.
    pub fn revalidate_always(&mut self) {
        (self.cache_valid_ms, self.negative_valid_ms) = (0, 0);
    }

    /// Options for a directory whose files an application sends by X-Sendfile or X-Accel-Redirect.
    /// The application has decided to send the file, so dot files, sources and private names are
    /// ordinary files; it may just have written the file, so each cached file is compared with the
    /// file system. Symbolic links still must not leave the directory.
    pub fn for_sendfile(users: Arc<Users>) -> Self {
        Self {
            htaccess: false,
            users,
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
