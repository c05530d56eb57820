//! Settings of a host, as the gateway sends them.

use super::fixtures;
use outboard_ring::control::{HostSettings, Isolation, Rlimits, WorkerScript, Xdebug};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Settings of a classic app; only the modules' ini files are read.
pub fn settings() -> HostSettings {
    HostSettings {
        app: "test".into(),
        document_root: fixtures(),
        sapi_name: "fpm-fcgi".into(),
        ini_file: None,
        ini_scan_dir: None,
        ini: ini(&[
            ("opcache.file_update_protection", "0"),
            ("log_errors", "1"),
            ("expose_php", "1"),
            ("output_buffering", "0"),
        ]),
        fixed_ini: BTreeMap::new(),
        env: ini(&[("APP_COLOUR", "blue")]),
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

/// The same as another user, if the tests run as root.
pub fn settings_as_nobody() -> HostSettings {
    let run_as = rustix::process::geteuid().is_root().then_some((65534, 65534));
    HostSettings { run_as, ..settings() }
}

/// Settings for worker mode with this script, one request at a time.
pub fn settings_of_worker(script: PathBuf) -> HostSettings {
    let worker = WorkerScript {
        script,
        concurrency: 1,
        isolation: Isolation::Reset,
        lists_files: false,
        frankenphp: true,
        starts_server: false,
        arguments: Vec::new(),
        state_report: None,
        exit_ends_script: false,
        boot_request: None,
    };
    let mut settings = settings();
    settings.ini.extend(ini(&[("display_errors", "0"), ("html_errors", "0")]));
    HostSettings { worker: Some(worker), ..settings }
}

pub fn ini(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
