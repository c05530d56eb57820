//! The settings of an app's PHP host, from the app's configuration.
//!
//! Called for each pool. Invariant: settings that the gateway depends on cannot be configured (by its type:
//! they have fields of their own, which are not those of the configured ones).

use crate::sandbox;
use outboard_config::{self as config, App, Mode};
use outboard_ring::control::{
    ControlGroup, HostSettings, Isolation, Rlimits, WorkerScript, Xdebug,
};
use outboard_spawner::users;
use rustix::process::{getegid, geteuid};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The name of php-fpm: OPcache supports it, and applications know its features
/// (`fastcgi_finish_request`, no console). See `docs/decisions/0004-sapi-name.md`.
const SAPI_NAME: &str = "fpm-fcgi";

/// Programs that start a server run in the command line, and check that they do.
const SAPI_NAME_OF_CLI: &str = "cli";

/// The settings of the command line (`cli_main.c`), except that OPcache is enabled.
const INI_OF_CLI: [(&str, &str); 6] = [
    ("opcache.enable_cli", "1"),
    ("html_errors", "0"),
    ("implicit_flush", "1"),
    ("max_execution_time", "0"),
    ("output_buffering", "0"),
    ("display_errors", "0"),
];

/// Xdebug connects by the trigger of a request, and by nothing else.
const INI_OF_XDEBUG: [(&str, &str); 2] =
    [("xdebug.mode", "debug"), ("xdebug.start_with_request", "trigger")];

/// The port that a debugger listens on.
const CLIENT_PORT: &str = "xdebug.client_port";
const DEFAULT_CLIENT_PORT: u16 = 9003;

const FORCE_RESTART_TIMEOUT: &str = "opcache.force_restart_timeout";

/// Marks a task worker (`worker_script.c`).
const TASK_WORKER_VARIABLE: &str = "OUTBOARD_TASK_WORKER";

/// The name of the class that handles requests (`runtime/Worker.php`).
const WORKER_CLASS_VARIABLE: &str = "OUTBOARD_WORKER_CLASS";

/// The settings of an app's host.
///
/// # Errors
/// A user or group that does not exist.
pub(crate) fn of(app: &App) -> Result<HostSettings, String> {
    let php = &app.php;
    let mut fixed_ini = BTreeMap::new();
    if let Some(preload) = &php.preload {
        fixed_ini.insert("opcache.preload".to_owned(), preload.display().to_string());
    }
    if let Some(user) = &php.preload_user {
        fixed_ini.insert("opcache.preload_user".to_owned(), user.clone());
    }
    if matches!(app.mode, Mode::Worker(_)) {
        // When its memory is full, OPcache would kill workers with a worker script (`opcache.c`).
        fixed_ini.insert(FORCE_RESTART_TIMEOUT.to_owned(), "0".to_owned());
    }
    let is_program = matches!(&app.mode, Mode::Worker(worker) if worker.starts_server);
    let mut ini = php.ini.clone();
    if is_program {
        for (name, value) in INI_OF_CLI {
            ini.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    Ok(HostSettings {
        app: app.name.clone(),
        document_root: app.root.clone(),
        sapi_name: if is_program { SAPI_NAME_OF_CLI } else { SAPI_NAME }.to_owned(),
        ini_file: php.ini_file.clone(),
        ini_scan_dir: php.ini_scan_dir.clone(),
        ini,
        fixed_ini,
        env: environment(app),
        run_as: run_as(app)?,
        no_new_privileges: php.no_new_privileges,
        dumpable: php.dumpable,
        background_programs: php.background_programs,
        control_group: control_group(app),
        sandbox: app.sandbox.as_ref().map(|sandbox| sandbox::of(app, sandbox)),
        rlimits: Rlimits {
            files: php.rlimits.files.map(u64::from),
            core_bytes: Some(php.rlimits.core_bytes),
            processes: php.rlimits.processes.map(u64::from),
            address_space_bytes: php.rlimits.address_space_bytes,
        },
        worker: worker(&app.mode),
        xdebug: if app.debug.in_all_workers { Xdebug::AsConfigured } else { Xdebug::Never },
    })
}

/// The settings of the host of an app's task workers.
///
/// # Errors
/// As [`of`].
pub(crate) fn of_tasks(app: &App, tasks: &config::Tasks) -> Result<HostSettings, String> {
    let mut settings = of(app)?;
    settings.env.insert(TASK_WORKER_VARIABLE.to_owned(), "1".to_owned());
    settings.worker = Some(WorkerScript {
        script: tasks.script.clone(),
        concurrency: tasks.concurrency,
        isolation: Isolation::Reset,
        lists_files: false,
        exit_ends_script: false,
        frankenphp: settings.worker.as_ref().is_none_or(|worker| worker.frankenphp),
        state_report: None,
        starts_server: settings.worker.as_ref().is_some_and(|worker| worker.starts_server),
        arguments: settings.worker.take().map_or_else(Vec::new, |worker| worker.arguments),
        boot_request: None,
    });
    Ok(settings)
}

/// Has PHP debug each request, one at a time in a process. Settings of Xdebug in the configuration take precedence; those of
/// ini files, which may have it profile all requests, do not. A script boots once for each request, or its snapshot is
/// forked: a debugger's session ends with the process.
pub(crate) fn debug(settings: &mut HostSettings) {
    settings.xdebug = Xdebug::Always;
    for (name, value) in INI_OF_XDEBUG {
        settings.ini.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    if let Some(worker) = &mut settings.worker {
        worker.concurrency = 1;
        worker.exit_ends_script = true;
        worker.lists_files = false;
        if worker.isolation == Isolation::Rewind {
            worker.isolation = Isolation::Fork;
        }
    }
    let port = settings.ini.get(CLIENT_PORT).and_then(|port| port.parse().ok());
    let ports = settings.sandbox.as_mut().and_then(|sandbox| sandbox.connect_ports.as_mut());
    ports.into_iter().for_each(|ports| ports.push(port.unwrap_or(DEFAULT_CLIENT_PORT)));
}

/// Has the host boot a script of classic mode with a request.
pub(crate) fn run_snapshot(settings: &mut HostSettings, script: PathBuf, boot_request: Vec<u8>) {
    settings.fixed_ini.insert(FORCE_RESTART_TIMEOUT.to_owned(), "0".to_owned());
    settings.worker = Some(WorkerScript {
        script,
        concurrency: 1,
        isolation: Isolation::Rewind,
        lists_files: true,
        exit_ends_script: false,
        frankenphp: false,
        state_report: None,
        starts_server: false,
        arguments: Vec::new(),
        boot_request: Some(boot_request),
    });
}

fn worker(mode: &Mode) -> Option<WorkerScript> {
    let Mode::Worker(worker) = mode else { return None };
    Some(WorkerScript {
        script: worker.script.clone(),
        concurrency: worker.concurrency,
        isolation: match worker.isolation {
            config::Isolation::Reset => Isolation::Reset,
            config::Isolation::Rewind => Isolation::Rewind,
        },
        lists_files: worker.watch && worker.isolation != config::Isolation::Reset,
        exit_ends_script: worker.exit_ends_script,
        frankenphp: worker.frankenphp,
        state_report: worker.state_report.clone(),
        starts_server: worker.starts_server,
        arguments: worker.argv(),
        boot_request: None,
    })
}

/// The configured variables, inherited ones, and those that php-fpm sets as well.
fn environment(app: &App) -> BTreeMap<String, String> {
    let inherited =
        app.php.pass_env.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
    let mut env: BTreeMap<String, String> = inherited.collect();
    env.entry("PATH".to_owned()).or_insert_with(|| config::DEFAULT_PATH.to_owned());
    env.extend(app.php.env.clone());
    if let Mode::Worker(config::Worker { class: Some(class), .. }) = &app.mode {
        env.insert(WORKER_CLASS_VARIABLE.to_owned(), class.clone());
    }
    env
}

fn control_group(app: &App) -> Option<ControlGroup> {
    let limits = app.php.control_group.as_ref()?;
    Some(ControlGroup {
        app: app.name.clone(),
        memory_max_bytes: limits.memory_max_bytes,
        cpu_weight: limits.cpu_weight,
        processes_max: limits.processes_max,
    })
}

/// The ids of the user and group of the host, if it has to change them.
fn run_as(app: &App) -> Result<Option<(u32, u32)>, String> {
    let Some(name) = &app.user else {
        return match &app.group {
            Some(group) => Ok(Some((geteuid().as_raw(), users::group_id(group)?.as_raw()))),
            None => Ok(None),
        };
    };
    let user = users::user(name, app.group.as_deref())
        .map_err(|message| format!("app {}: {message}", app.name))?;
    // A server that runs as this user already cannot change it.
    let is_already = (geteuid(), getegid()) == (user.uid, user.gid);
    Ok((!is_already).then_some((user.uid.as_raw(), user.gid.as_raw())))
}
