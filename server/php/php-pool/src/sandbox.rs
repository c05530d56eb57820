//! The sandbox of an app's PHP host, from the app's configuration.
//!
//! Called for the settings of a host. Invariant: every path that the configuration names for PHP to use is
//! among the app's, so that it works as without a sandbox.

use outboard_config::{App, Mode, Sandbox};
use outboard_ring::control;
use std::path::Path;

/// What the PHP of an app is confined to.
pub(crate) fn of(app: &App, sandbox: &Sandbox) -> control::Sandbox {
    let scripts = match &app.mode {
        Mode::Classic => None,
        Mode::Worker(worker) => Some(&worker.script),
    };
    let tasks = app.tasks.as_ref().map(|tasks| &tasks.script);
    let scripts = scripts.into_iter().chain(tasks).chain(&app.php.preload);
    let directories = scripts.filter_map(|script| script.parent());
    let served = app.sendfile.roots.iter().chain(app.sendfile.accel.values());
    let served = served.chain(&app.static_files.symlink_targets);
    let reports = match &app.mode {
        Mode::Classic => None,
        Mode::Worker(worker) => worker.state_report.as_deref().and_then(Path::parent),
    };
    let app_paths: Vec<_> = [app.root.as_path()]
        .into_iter()
        .chain(directories)
        .chain(served.map(|path| path.as_path()))
        .map(Path::to_owned)
        .collect();
    debug_assert!(
        app_paths.iter().all(|path| path.is_absolute()),
        "the host has another working directory: {app_paths:?}"
    );
    control::Sandbox {
        is_strict: sandbox.is_strict,
        app_paths,
        read_paths: sandbox.read_paths.clone(),
        write_paths: sandbox
            .write_paths
            .iter()
            .map(|path| path.as_path())
            .chain(reports)
            .map(Path::to_owned)
            .collect(),
        connect_ports: sandbox.is_strict.then(|| sandbox.connect_ports.clone()),
    }
}
