//! The processes of an app: what can be known before they are started.

use super::app::App;
use super::context::Context;
use super::environment::project_of;
use crate::diagnostic::Kind;
use crate::disk::Found;
use crate::raw::{self, Php, Process};
use crate::scalar::Fault;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// `PATH` of an app's processes, unless its environment has another.
pub const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Instances of all processes of all apps.
const MAX_INSTANCES: u32 = 500;

/// `place` is the app's.
pub(super) fn processes(
    raw: &raw::App,
    root: &Path,
    php: &Php,
    place: &[&str],
    context: &mut Context<'_>,
) -> BTreeMap<String, Process> {
    let one = |(name, written): (&String, &Process)| {
        let place = [place, &["process", name]].concat();
        let at = |key: &'static str| [&place[..], &[key]].concat();
        let mut process = written.clone();
        process.directory = match written.directory.as_os_str().is_empty() {
            true => project_of(root, context),
            false => directory(&at("directory"), &written.directory, context),
        };
        process.watch = (written.watch.iter().enumerate())
            .map(|(index, directory)| {
                let index = index.to_string();
                context.directory(&[&at("watch")[..], &[index.as_str()]].concat(), directory)
            })
            .collect();
        check_program(&process, php, &at("command"), context);
        (name.clone(), process)
    };
    raw.process.iter().map(one).collect()
}

/// The user of the process may enter a directory that this one cannot read.
fn directory(place: &[&str], written: &Path, context: &mut Context<'_>) -> PathBuf {
    let path = context.absolute(written);
    match context.disk.look(&path) {
        Ok(Found::Directory) => path,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => path,
        _ => context.directory(place, written),
    }
}

/// Together they are bounded.
pub(super) fn check_number(apps: &[App], context: &mut Context<'_>) {
    let mut count = 0;
    for app in apps {
        for (name, process) in &app.processes {
            count += process.instances;
            if count > MAX_INSTANCES {
                let fault =
                    Fault::new(format!("all apps have more than {MAX_INSTANCES} instances"))
                        .hint("reduce `instances`, here or of other processes");
                let place = ["app", &app.name, "process", name, "instances"];
                return context.value(&place, Kind::OutOfRange, fault);
            }
        }
    }
}

fn check_program(process: &Process, php: &Php, place: &[&str], context: &mut Context<'_>) {
    let Some(program) = process.command.first().filter(|program| !program.is_empty()) else {
        // A missing key is reported as such.
        if context.places.wrote(place) {
            let fault = Fault::new("the command is empty").hint(
                "write the program and its arguments: [\"php\", \"artisan\", \"queue:work\"]",
            );
            context.value(place, Kind::BadValue, fault);
        }
        return;
    };
    let path = path(php);
    let candidates: Vec<PathBuf> = match program.contains('/') {
        true => vec![process.directory.join(program)],
        false => path.split(':').map(|at| process.directory.join(at).join(program)).collect(),
    };
    let mut fault = match program.contains('/') {
        true => Fault::new(format!("there is no program `{}`", candidates[0].display()))
            .hint("a relative path begins in the directory of the process"),
        false => Fault::new(format!("there is no program `{program}` in {path}"))
            .hint("install it, write its path, or set PATH in the app's [php.env]"),
    };
    for candidate in &candidates {
        match context.disk.look(candidate) {
            Ok(Found::File { executable: false }) => {
                fault = Fault::new(format!("`{}` is not executable", candidate.display()))
                    .hint(format!("chmod +x {}", candidate.display()));
            }
            Ok(Found::Directory | Found::Other) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // It is a program, or the user of the process may see more than this one.
            Ok(Found::File { executable: true }) | Err(_) => return,
        }
    }
    context.value(place, Kind::Path, fault);
}

/// The `PATH` of the app.
fn path(php: &Php) -> String {
    let inherits = php.pass_env.iter().any(|name| name == "PATH");
    let inherited = || std::env::var("PATH").ok().filter(|_| inherits);
    php.env.get("PATH").cloned().or_else(inherited).unwrap_or_else(|| DEFAULT_PATH.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checked::testing::{APP, assert_error, site, valid};
    use crate::*;

    #[test]
    fn a_process_runs_in_the_project_of_its_app() {
        let text = "[app.site.process.queue]\ncommand = [\"php\", \"artisan\", \"queue:work\"]\n\
                    instances = 3\nstop_signal = \"SIGQUIT\"\nstop_timeout = \"90s\"\n\
                    [app.site.process.render]\ncommand = [\"bin/render.js\"]\n\
                    directory = \"node\"\nwatch = [\"node/src\"]\nmax_memory = 0\n";
        let processes = site(text).processes;
        let (queue, render) = (&processes["queue"], &processes["render"]);
        assert_eq!((queue.instances, queue.stop_signal.number()), (3, 3));
        assert_eq!((queue.stop_timeout_ms, queue.max_memory_bytes), (90_000, Some(512 << 20)));
        // Its `public` is that of a project, which has a composer.json.
        assert_eq!(queue.directory, Path::new("/srv/www"));
        assert_eq!((&render.directory, render.max_memory_bytes), (&"/srv/www/node".into(), None));
        assert_eq!(render.watch, [PathBuf::from("/srv/www/node/src")]);
        assert!(site("").processes.is_empty());
    }

    #[test]
    fn a_command_that_cannot_be_started_is_an_error_with_its_place() {
        let directory =
            std::env::temp_dir().join(format!("outboard-config-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("public")).unwrap();
        std::fs::write(directory.join("notes"), "").unwrap();
        let error = |command: &str| {
            let text = format!("{APP}[app.site.process.p]\ncommand = {command}\n");
            let result = Config::parse(&text, &directory.join("outboard.toml"));
            result.err().map(|error| error.to_string()).unwrap_or_default()
        };
        for (command, words) in [
            ("[\"/bin/sh\", \"-c\", \"exit\"]", ""),
            ("[\"sh\"]", ""),
            ("[]", "the command is empty"),
            ("[\"no-such-program\"]", "there is no program `no-such-program` in /usr/local/sbin:"),
            ("[\"./none\"]", "there is no program `"),
            ("[\"../notes\"]", "is not executable"),
            ("[\"./\"]", "there is no program `"),
        ] {
            let text = error(command);
            assert!(
                text.contains(words) && text.is_empty() == words.is_empty(),
                "{command}: {text}"
            );
            assert!(words.is_empty() || text.contains(":4:"), "{text}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_examples_of_the_guide_are_valid() {
        const GUIDE: &str = include_str!("../../../../../docs/guide/processes.md");
        let blocks = GUIDE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let apps = blocks.map(|text| valid(text).apps.remove(0));
        let counts: Vec<usize> = apps.map(|app| app.processes.len()).collect();
        assert_eq!(counts, [1, 2, 1, 1, 1]);
    }

    #[test]
    fn contradictory_and_excessive_settings_are_errors() {
        let process = format!("{APP}[app.site.process.p]\n");
        assert_error(&process, Kind::MissingKey, 3, "command");
        let text = format!("{process}command = [\"php\"]\nstop_signal = \"SIGSTOP\"\n");
        assert_error(&text, Kind::OutOfRange, 5, "SIGTERM");
        let many: String = (0..6)
            .map(|n| format!("[app.site.process.p{n}]\ncommand = [\"php\"]\ninstances = 100\n"))
            .collect();
        assert_error(&format!("{APP}{many}"), Kind::OutOfRange, 20, "more than 500 instances");
        assert_error(&format!("{APP}[app.site.process.\"a b\"]\n"), Kind::BadValue, 3, "app name");
    }
}
