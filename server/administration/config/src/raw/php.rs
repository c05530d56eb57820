//! `[php]`: the PHP interpreter and its settings.

use super::table::table;
use crate::scalar::{
    As, ByteSize, EnvName, FileExtension, FilePath, IniName, IniValue, PhpVersion, PlainText,
    Scalar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

table! {
    /// The PHP interpreter and its settings.
    #[derive(PartialEq, Eq)]
    pub struct Php {
        /// Version of PHP, of those that are installed: `"8.2"` is the program `outboard-php8.2`. Default: the
        /// only one, or the newest.
        #[serde(with = "As::<Option<PhpVersion>>")]
        #[schemars(extend("x-alias" = ["php_version"]))]
        pub version: Option<String> = None,
        /// PHP host binary, which determines the PHP version, instead of `version`. Default:
        /// `outboard-php` in the directory of `outboard`.
        #[serde(with = "As::<Option<FilePath>>")]
        pub host_binary: Option<PathBuf> = None,
        /// Path of php.ini. Default: the first that exists of `/etc/php/X.Y/outboard/php.ini`,
        /// `/etc/php/X.Y/fpm/php.ini` and PHP's compiled-in location.
        #[schemars(extend("x-alias" = ["PHPIniDir", "php_ini"]))]
        #[serde(with = "As::<Option<FilePath>>")]
        pub ini_file: Option<PathBuf> = None,
        /// Directory of additional ini files. Default: the first that exists of
        /// `/etc/php/X.Y/outboard/conf.d`, `/etc/php/X.Y/fpm/conf.d` and PHP's compiled-in directory.
        #[serde(with = "As::<Option<FilePath>>")]
        pub ini_scan_dir: Option<PathBuf> = None,
        /// php.ini settings. They override the ini files; `.user.ini` and `ini_set()` override them.
        #[schemars(extend(
            "propertyNames" = { "format": IniName::NAME },
            "x-alias" = ["php_value", "php_flag", "php_admin_value", "php_admin_flag"],
        ))]
        #[serde(with = "As::<BTreeMap<String, IniValue>>")]
        pub ini: BTreeMap<String, String> = BTreeMap::new(),
        /// Environment variables for PHP.
        #[schemars(extend("propertyNames" = { "format": EnvName::NAME }, "x-alias" = ["SetEnv"]))]
        #[serde(with = "As::<BTreeMap<String, PlainText>>")]
        pub env: BTreeMap<String, String> = BTreeMap::new(),
        /// Environment variables of the server that PHP inherits.
        #[schemars(extend("x-alias" = ["clear_env", "PassEnv"]))]
        #[serde(with = "As::<Vec<EnvName>>")]
        pub pass_env: Vec<String> = Vec::new(),
        /// Additional entries of `$_SERVER`, the same for every request.
        #[schemars(extend("propertyNames" = { "format": EnvName::NAME }, "x-alias" = ["fastcgi_param", "include"]))]
        #[serde(with = "As::<BTreeMap<String, PlainText>>")]
        pub params: BTreeMap<String, String> = BTreeMap::new(),
        /// File extensions that are executed as PHP, without the dot.
        #[schemars(extend("x-alias" = ["security.limit_extensions", "AddHandler"]))]
        #[serde(with = "As::<Vec<FileExtension>>")]
        pub extensions: Vec<String> = vec!["php".to_owned()],
        /// Script that runs once, before the first worker (`opcache.preload`).
        #[serde(with = "As::<Option<FilePath>>")]
        pub preload: Option<PathBuf> = None,
        /// User that runs the preload script when root starts the server (`opcache.preload_user`).
        #[serde(with = "As::<Option<PlainText>>")]
        pub preload_user: Option<String> = None,
        /// Whether programs started by PHP are prevented from gaining privileges through setuid and
        /// setgid bits, as sudo and Postfix's sendmail do.
        #[schemars(extend("x-alias" = ["NoNewPrivileges", "no_new_privs"]))]
        pub no_new_privileges: bool = true,
        /// Whether programs of the same user may read and change the memory of PHP's processes: debuggers, core
        /// dumps, `outboard profile` without root. Memory has data of earlier visitors.
        #[schemars(extend("x-alias" = ["process.dumpable", "PR_SET_DUMPABLE"]))]
        pub dumpable: bool = false,
        /// Whether programs that a request has started go on after it with isolation by rewind, and after
        /// `Outboard\snapshot()`. They see what the request saw, and with rewind its worker continues to run next to them. In
        /// classic mode and with isolation by reset they always go on, as under php-fpm.
        #[schemars(extend("x-alias" = ["nohup", "setsid", "KillMode"]))]
        pub background_programs: bool = false,
        /// Resource limits of PHP processes.
        pub rlimits: Rlimits = Rlimits::default(),
        /// Limits for all PHP processes of the app together.
        pub control_group: Option<ControlGroup> = None,
    }
}

/// Limits for all PHP processes of an app and the programs that they start, together, by a control group
/// of version 2 (cgroups(7)). The server's own group has to be delegated to it (`Delegate=yes`). Default:
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ControlGroup {
    /// Maximum memory; what exceeds it is killed.
    #[schemars(extend("x-minimum" = "64 MiB", "x-alias" = ["MemoryMax", "memory.max"]))]
    #[serde(rename = "memory_max", with = "As::<Option<ByteSize>>")]
    pub memory_max_bytes: Option<u64>,
    /// Share of the processors, relative to other groups, where all compute. The kernel's default is 100.
    #[schemars(range(min = 1, max = 10000), extend("x-alias" = ["CPUWeight", "cpu.weight"]))]
    pub cpu_weight: Option<u32>,
    /// Maximum processes and threads.
    #[schemars(range(min = 4), extend("x-alias" = ["TasksMax", "pids.max"]))]
    pub processes_max: Option<u32>,
}

table! {
    /// Resource limits of PHP processes (setrlimit(2)). Default: those of the server.
    #[derive(PartialEq, Eq)]
    pub struct Rlimits {
        /// Maximum open files and sockets of a process.
        #[schemars(range(min = 32), extend("x-alias" = ["rlimit_files", "LimitNOFILE"]))]
        pub files: Option<u32> = None,
        /// Maximum size of a core dump. 0: no core dumps. They take `dumpable = true` as well.
        #[schemars(extend("x-alias" = ["rlimit_core", "LimitCORE"]))]
        #[serde(rename = "core", with = "As::<ByteSize>")]
        pub core_bytes: u64 = 0,
        /// Maximum processes and threads of the app's user, including those of other programs. Apps
        /// with the same user share this limit.
        #[schemars(range(min = 1), extend("x-alias" = ["LimitNPROC", "pids"]))]
        pub processes: Option<u32> = None,
        /// Maximum address space of a process, including OPcache's shared memory.
        #[schemars(extend("x-minimum" = "64 MiB", "x-alias" = ["LimitAS"]))]
        #[serde(rename = "address_space", with = "As::<Option<ByteSize>>")]
        pub address_space_bytes: Option<u64> = None,
    }
}
