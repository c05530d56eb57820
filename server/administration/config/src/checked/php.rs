//! The PHP interpreter and its settings.

use super::Context;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, FileExtension};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The PHP settings of one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Php {
    /// Version of PHP; `None`: that of the host binary.
    pub version: Option<String>,
    /// PHP host binary; `None`: the one in the directory of the gateway's binary.
    pub host_binary: Option<PathBuf>,
    /// Path of php.ini; `None`: the default location.
    pub ini_file: Option<PathBuf>,
    /// Directory of additional ini files; `None`: the default directory.
    pub ini_scan_dir: Option<PathBuf>,
    /// php.ini settings by name.
    pub ini: BTreeMap<String, String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Names of environment variables of the server that PHP inherits.
    pub pass_env: Vec<String>,
    /// Additional entries of `$_SERVER`.
    pub params: BTreeMap<String, String>,
    /// File extensions that are executed as PHP, with the dot: `.php`.
    pub extensions: Vec<String>,
    /// `opcache.preload`.
    pub preload: Option<PathBuf>,
    /// `opcache.preload_user`.
    pub preload_user: Option<String>,
    /// Whether programs started by PHP are prevented from gaining privileges.
    pub no_new_privileges: bool,
    /// Whether programs of the same user may read and change the memory of PHP's processes.
    pub dumpable: bool,
    /// Whether programs that a request has started go on after it in every mode.
    pub background_programs: bool,
    /// Resource limits of PHP processes.
    pub rlimits: Rlimits,
    /// Limits for all PHP processes of the app together; `None`: none is configured.
    pub control_group: Option<ControlGroup>,
}

/// Limits for all PHP processes of an app together; `None`: no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    /// Maximum memory.
    pub memory_max_bytes: Option<u64>,
    /// Share of the processors: 1 to 10000.
    pub cpu_weight: Option<u32>,
    /// Maximum processes and threads.
    pub processes_max: Option<u32>,
}

/// Resource limits of PHP processes; `None`: those of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rlimits {
    /// Maximum open files and sockets of a process.
    pub files: Option<u64>,
    /// Maximum size of a core dump.
    pub core_bytes: u64,
    /// Maximum processes and threads of the app's user.
    pub processes: Option<u64>,
    /// Maximum address space of a process.
    pub address_space_bytes: Option<u64>,
}

pub(super) fn php(raw: &raw::Php, place: &[&str], context: &mut Context<'_>) -> Php {
    let at = |key: &'static str| [place, &[key]].concat();
    let strings = |map: &BTreeMap<String, crate::scalar::PlainText>| {
        map.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
    };
    if raw.version.is_some() && raw.host_binary.is_some() {
        let fault = Fault::new("`version` and `host_binary` exclude each other");
        context.key(&at("version"), Kind::Conflict, fault.hint("remove one of them"));
    }
    Php {
        version: raw.version.as_ref().map(|version| version.0.clone()),
        host_binary: raw.host_binary.as_ref().map(|path| context.program(&at("host_binary"), path)),
        ini_file: raw.ini_file.as_ref().map(|path| context.file(&at("ini_file"), path)),
        ini_scan_dir: raw
            .ini_scan_dir
            .as_ref()
            .map(|path| context.directory(&at("ini_scan_dir"), path)),
        ini: raw.ini.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect(),
        env: strings(&raw.env),
        pass_env: raw.pass_env.iter().map(|name| name.0.clone()).collect(),
        params: strings(&raw.params),
        extensions: raw.extensions.iter().map(dotted).collect(),
        preload: raw.preload.as_ref().map(|path| context.file(&at("preload"), path)),
        preload_user: raw.preload_user.as_ref().map(|user| user.0.clone()),
        no_new_privileges: raw.no_new_privileges,
        dumpable: raw.dumpable,
        background_programs: raw.background_programs,
        control_group: control_group(&raw.control_group),
        rlimits: Rlimits {
            files: raw.rlimits.files.map(u64::from),
            core_bytes: raw.rlimits.core.0,
            processes: raw.rlimits.processes.map(u64::from),
            address_space_bytes: raw.rlimits.address_space.as_ref().map(|size| size.0),
        },
    }
}

fn control_group(raw: &raw::ControlGroup) -> Option<ControlGroup> {
    let group = ControlGroup {
        memory_max_bytes: raw.memory_max.as_ref().map(|size| size.0),
        cpu_weight: raw.cpu_weight,
        processes_max: raw.processes_max,
    };
    let is_empty = [
        group.memory_max_bytes.is_none(),
        group.cpu_weight.is_none(),
        group.processes_max.is_none(),
    ];
    is_empty.contains(&false).then_some(group)
}

fn dotted(extension: &FileExtension) -> String {
    format!(".{}", FileExtension::bare(&extension.0))
}
