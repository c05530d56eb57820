//! [`ProcessSettings`]: what an instance of a process is run with.
//!
//! From the configuration of its app, for each generation. Invariant: settings of PHP alone are not among them, so that a
//! reload that changes these leaves processes alone.

use crate::allowance::LogRate;
use crate::pool::PoolSettings;
use outboard_config::Process;
use outboard_ring::control::{Command, HostSettings};
use outboard_supervisor::plan::restart::RestartTimes;
use outboard_supervisor::zygote::AsUser;
use std::path::{Path, PathBuf};

/// The number of an instance, from 0, for its program.
const INSTANCE_VARIABLE: &str = "OUTBOARD_INSTANCE";

/// See the module.
#[derive(Debug, Clone)]
pub struct ProcessSettings {
    pub(super) host_binary: PathBuf,
    pub(super) as_user: Option<AsUser>,
    pub(super) host: HostSettings,
    pub(super) command: Command,
    pub(super) log_rate: LogRate,
    pub(super) config: Process,
}

impl ProcessSettings {
    /// Those of an instance, by the settings of the app's PHP.
    pub fn of(pool: &PoolSettings, name: &str, number: u32, process: &Process) -> Self {
        let mut host = pool.host.clone();
        host.app = format!("{} {name}/{number}", pool.app);
        host.env.insert(INSTANCE_VARIABLE.to_owned(), number.to_string());
        host.worker = None;
        (host.ini_file, host.ini_scan_dir) = (None, None);
        host.ini.clear();
        host.fixed_ini.clear();
        let command =
            Command { arguments: process.command.clone(), directory: process.directory.clone() };
        debug_assert!(command.directory.is_absolute(), "the host has another working directory");
        if let Some(sandbox) = &mut host.sandbox {
            sandbox.app_paths.push(command.directory.clone());
            // By its path, wherever that is.
            let program = command.arguments.first().map(Path::new).filter(|one| one.is_absolute());
            sandbox.read_paths.extend(program.map(Path::to_owned));
        }
        Self {
            host_binary: pool.host_binary.clone(),
            as_user: pool.as_user.clone(),
            host,
            command,
            log_rate: pool.log_rate,
            config: process.clone(),
        }
    }

    /// Whether a running program is what these settings start. The others take effect while it runs.
    pub(super) fn start_the_same_as(&self, other: &Self) -> bool {
        let user = |settings: &Self| settings.as_user.as_ref().map(|user| user.user);
        self.host_binary == other.host_binary
            && self.host == other.host
            && self.command == other.command
            && user(self) == user(other)
    }

    pub(super) fn restart_times(&self) -> RestartTimes {
        RestartTimes {
            backoff_ms: self.config.backoff_ms,
            max_backoff_ms: self.config.max_backoff_ms,
            stable_after_ms: self.config.stable_after_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_config::Config;

    /// The first instance of the process of an app with these lines.
    fn settings(lines: &str) -> ProcessSettings {
        let text = format!(
            "[app.a]\nroot = \"/tmp\"\n[app.a.process.p]\ncommand = [\"/bin/sh\"]\n\
             directory = \"/var\"\n{lines}"
        );
        let config = Config::parse(&text, Path::new("/outboard.toml")).unwrap();
        let app = &config.apps[0];
        let pool = PoolSettings::of(app, Path::new("/bin/host"), None).unwrap();
        ProcessSettings::of(&pool, "p", 0, &app.processes["p"])
    }

    #[test]
    fn a_program_has_the_environment_and_the_sandbox_of_its_app() {
        let settings = settings("[app.a.php.env]\nAPP_ENV = \"prod\"\n");
        assert_eq!(settings.host.env["APP_ENV"], "prod");
        assert_eq!(settings.host.env[INSTANCE_VARIABLE], "0");
        assert!(settings.host.env.contains_key("PATH"));
        let sandbox = settings.host.sandbox.unwrap();
        assert!(sandbox.app_paths.contains(&"/var".into()));
        assert_eq!(sandbox.read_paths, [PathBuf::from("/bin/sh")]);
    }

    #[test]
    fn only_what_a_program_is_started_with_makes_another_one() {
        let before = settings("");
        for same in ["max_memory = \"1g\"\nstop_timeout = \"1s\"\n", "[app.a.php.ini]\na = \"1\"\n"]
        {
            assert!(before.start_the_same_as(&settings(same)), "{same}");
        }
        for other in ["[app.a.php.env]\nX = \"1\"\n", "[app.a.php.rlimits]\nfiles = 64\n"] {
            assert!(!before.start_the_same_as(&settings(other)), "{other}");
        }
    }
}
