//! `[php]`: the interpreter and what it is told.

use crate::scalar::{
    ByteSize, EnvName, FileExtension, FilePath, IniName, IniValue, PlainText, Scalar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The interpreter and what it is told.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Php {
    /// The PHP host to start, which decides the PHP version; absent: the `outboard-php` beside
    /// `outboard`.
    pub(crate) host_binary: Option<FilePath>,
    /// The php.ini to read; absent: that of `/etc/php/X.Y/outboard`, else of php-fpm
    /// (`/etc/php/X.Y/fpm`), else the one that PHP finds by itself.
    #[schemars(extend("x-alias" = ["PHPIniDir", "php_ini"]))]
    pub(crate) ini_file: Option<FilePath>,
    /// The folder of further ini files; absent: `conf.d` of `/etc/php/X.Y/outboard`, else of
    /// php-fpm, else the one that PHP was built with.
    pub(crate) ini_scan_dir: Option<FilePath>,
    /// Settings of php.ini; they stand above the ini files, below `.user.ini` and `ini_set()`.
    #[schemars(extend(
        "propertyNames" = { "format": IniName::NAME },
        "x-alias" = ["php_value", "php_flag", "php_admin_value", "php_admin_flag"],
    ))]
    pub(crate) ini: BTreeMap<String, IniValue>,
    /// Environment variables for PHP.
    #[schemars(extend("propertyNames" = { "format": EnvName::NAME }, "x-alias" = ["SetEnv"]))]
    pub(crate) env: BTreeMap<String, PlainText>,
    /// Variables of the server's own environment that PHP gets too.
    #[schemars(extend("x-alias" = ["clear_env", "PassEnv"]))]
    pub(crate) pass_env: Vec<EnvName>,
    /// Further entries of `$_SERVER`, request by request the same.
    #[schemars(extend("propertyNames" = { "format": EnvName::NAME }, "x-alias" = ["fastcgi_param", "include"]))]
    pub(crate) params: BTreeMap<String, PlainText>,
    /// Ends of names of the files that are run as PHP, without the dot.
    #[schemars(extend("x-alias" = ["security.limit_extensions", "AddHandler"]))]
    pub(crate) extensions: Vec<FileExtension>,
    /// A script that is run once, before the first worker: `opcache.preload`.
    pub(crate) preload: Option<FilePath>,
    /// The user that runs it when the server is started by root: `opcache.preload_user`.
    pub(crate) preload_user: Option<PlainText>,
    /// Whether programs that PHP starts gain no rights by their file, as sudo and the sendmail of
    /// Postfix do by the bits setuid and setgid.
    #[schemars(extend("x-alias" = ["NoNewPrivileges", "no_new_privs"]))]
    pub(crate) no_new_privileges: bool,
    /// What the kernel lets PHP's processes have.
    pub(crate) rlimits: Rlimits,
}

/// What the kernel lets PHP's processes have (setrlimit(2)); what is absent is as for the server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rlimits {
    /// Open files and sockets of a process.
    #[schemars(range(min = 32), extend("x-alias" = ["rlimit_files", "LimitNOFILE"]))]
    pub(crate) files: Option<u32>,
    /// The size of a core dump; 0: none is written.
    #[schemars(extend("x-alias" = ["rlimit_core", "LimitCORE"]))]
    pub(crate) core: ByteSize,
    /// Processes and threads of the app's user, those of other programs counted. One app a user:
    /// apps that share one share this.
    #[schemars(range(min = 1), extend("x-alias" = ["LimitNPROC", "pids"]))]
    pub(crate) processes: Option<u32>,
    /// The address space of a process, opcache's shared memory in it.
    #[schemars(extend("x-minimum" = "64 MiB", "x-alias" = ["LimitAS"]))]
    pub(crate) address_space: Option<ByteSize>,
}

impl Default for Rlimits {
    fn default() -> Self {
        Rlimits { files: None, core: ByteSize(0), processes: None, address_space: None }
    }
}

impl Default for Php {
    fn default() -> Self {
        Php {
            host_binary: None,
            ini_file: None,
            ini_scan_dir: None,
            ini: BTreeMap::new(),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            params: BTreeMap::new(),
            extensions: vec![FileExtension("php".to_owned())],
            preload: None,
            preload_user: None,
            no_new_privileges: true,
            rlimits: Rlimits::default(),
        }
    }
}
