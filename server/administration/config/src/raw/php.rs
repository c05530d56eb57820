//! `[php]`: the PHP interpreter and its settings.

use crate::scalar::{
    ByteSize, EnvName, FileExtension, FilePath, IniName, IniValue, PhpVersion, PlainText, Scalar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The PHP interpreter and its settings.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Php {
    /// Version of PHP, of those that are installed: `"8.2"` is the program `outboard-php8.2`. Default: the
    /// only one, or the newest.
    pub(crate) version: Option<PhpVersion>,
    /// PHP host binary, which determines the PHP version, instead of `version`. Default:
    /// `outboard-php` in the directory of `outboard`.
    pub(crate) host_binary: Option<FilePath>,
    /// Path of php.ini. Default: the first that exists of `/etc/php/X.Y/outboard/php.ini`,
    /// `/etc/php/X.Y/fpm/php.ini` and PHP's compiled-in location.
    #[schemars(extend("x-alias" = ["PHPIniDir", "php_ini"]))]
    pub(crate) ini_file: Option<FilePath>,
    /// Directory of additional ini files. Default: the first that exists of
    /// `/etc/php/X.Y/outboard/conf.d`, `/etc/php/X.Y/fpm/conf.d` and PHP's compiled-in directory.
    pub(crate) ini_scan_dir: Option<FilePath>,
    /// php.ini settings. They override the ini files; `.user.ini` and `ini_set()` override them.
    #[schemars(extend(
        "propertyNames" = { "format": IniName::NAME },
        "x-alias" = ["php_value", "php_flag", "php_admin_value", "php_admin_flag"],
    ))]
    pub(crate) ini: BTreeMap<String, IniValue>,
    /// Environment variables for PHP.
    #[schemars(extend("propertyNames" = { "format": EnvName::NAME }, "x-alias" = ["SetEnv"]))]
    pub(crate) env: BTreeMap<String, PlainText>,
    /// Environment variables of the server that PHP inherits.
    #[schemars(extend("x-alias" = ["clear_env", "PassEnv"]))]
    pub(crate) pass_env: Vec<EnvName>,
    /// Additional entries of `$_SERVER`, the same for every request.
    #[schemars(extend("propertyNames" = { "format": EnvName::NAME }, "x-alias" = ["fastcgi_param", "include"]))]
    pub(crate) params: BTreeMap<String, PlainText>,
    /// File extensions that are executed as PHP, without the dot.
    #[schemars(extend("x-alias" = ["security.limit_extensions", "AddHandler"]))]
    pub(crate) extensions: Vec<FileExtension>,
    /// Script that runs once, before the first worker (`opcache.preload`).
    pub(crate) preload: Option<FilePath>,
    /// User that runs the preload script when root starts the server (`opcache.preload_user`).
    pub(crate) preload_user: Option<PlainText>,
    /// Whether programs started by PHP are prevented from gaining privileges through setuid and
    /// setgid bits, as sudo and Postfix's sendmail do.
    #[schemars(extend("x-alias" = ["NoNewPrivileges", "no_new_privs"]))]
    pub(crate) no_new_privileges: bool,
    /// Whether programs of the same user may read and change the memory of PHP's processes: debuggers, core
    /// dumps, `outboard profile` without root. Memory has data of earlier visitors.
    #[schemars(extend("x-alias" = ["process.dumpable", "PR_SET_DUMPABLE"]))]
    pub(crate) dumpable: bool,
    /// Whether programs that a request has started go on after it with isolation by rewind, and after
    /// `Outboard\snapshot()`. They see what the request saw, and with rewind its worker continues to run next to them. In
    /// classic mode and with isolation by reset they always go on, as under php-fpm.
    #[schemars(extend("x-alias" = ["nohup", "setsid", "KillMode"]))]
    pub(crate) background_programs: bool,
    /// Resource limits of PHP processes.
    pub(crate) rlimits: Rlimits,
    /// Limits for all PHP processes of the app together.
    pub(crate) control_group: ControlGroup,
}

/// Limits for all PHP processes of an app and the programs that they start, together, by a control group
/// of version 2 (cgroups(7)). The server's own group has to be delegated to it (`Delegate=yes`). Default:
/// none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ControlGroup {
    /// Maximum memory; what exceeds it is killed.
    #[schemars(extend("x-minimum" = "64 MiB", "x-alias" = ["MemoryMax", "memory.max"]))]
    pub(crate) memory_max: Option<ByteSize>,
    /// Share of the processors, relative to other groups, where all compute. The kernel's default is 100.
    #[schemars(range(min = 1, max = 10000), extend("x-alias" = ["CPUWeight", "cpu.weight"]))]
    pub(crate) cpu_weight: Option<u32>,
    /// Maximum processes and threads.
    #[schemars(range(min = 4), extend("x-alias" = ["TasksMax", "pids.max"]))]
    pub(crate) processes_max: Option<u32>,
}

/// Resource limits of PHP processes (setrlimit(2)). Default: those of the server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rlimits {
    /// Maximum open files and sockets of a process.
    #[schemars(range(min = 32), extend("x-alias" = ["rlimit_files", "LimitNOFILE"]))]
    pub(crate) files: Option<u32>,
    /// Maximum size of a core dump. 0: no core dumps. They take `dumpable = true` as well.
    #[schemars(extend("x-alias" = ["rlimit_core", "LimitCORE"]))]
    pub(crate) core: ByteSize,
    /// Maximum processes and threads of the app's user, including those of other programs. Apps
    /// with the same user share this limit.
    #[schemars(range(min = 1), extend("x-alias" = ["LimitNPROC", "pids"]))]
    pub(crate) processes: Option<u32>,
    /// Maximum address space of a process, including OPcache's shared memory.
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
            version: None,
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
            dumpable: false,
            background_programs: false,
            rlimits: Rlimits::default(),
            control_group: ControlGroup::default(),
        }
    }
}
