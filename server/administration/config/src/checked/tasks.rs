//! The task workers of an app: whether there are any, and their script.

use super::context::Context;
use super::worker::Mode;
use crate::diagnostic::Kind;
use crate::raw::Tasks;
use crate::scalar::Fault;

/// `None` without any workers. `place` is the app's.
pub(super) fn tasks(
    written: &Tasks,
    mode: &Mode,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<Tasks> {
    let at = |key: &'static str| [place, &["tasks", key]].concat();
    if written.workers == 0 {
        if !written.cron.is_empty() {
            let fault = Fault::new("these tasks never run: `workers` is 0")
                .hint("add workers = 1 to the app's [tasks]");
            context.key(&at("cron"), Kind::Conflict, fault);
        }
        return None;
    }
    let mut tasks = written.clone();
    match mode {
        _ if !written.script.as_os_str().is_empty() => {
            tasks.script = context.file(&at("script"), &written.script);
        }
        Mode::Worker(worker) => tasks.script.clone_from(&worker.script),
        Mode::Classic => {
            let fault = Fault::new("an app in classic mode has no script for its tasks")
                .hint("add a task script: tasks.script =  \"tasks.php\"");
            context.key(&at("script"), Kind::MissingKey, fault);
        }
    }
    Some(tasks)
}

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, site};
    use crate::*;
    use std::path::Path;

    #[test]
    fn tasks_have_workers_and_a_script() {
        assert_eq!(site("").tasks, None);
        let tasks = site("mode = \"worker\"\ntasks.workers = 2\n").tasks.unwrap();
        assert_eq!((tasks.workers, tasks.concurrency, tasks.max_retries), (2, 1, 3));
        assert_eq!(tasks.script, Path::new("/srv/www/public/index.php"));
        let text = "[app.site.tasks]\nworkers = 1\nscript = \"bin/tasks.php\"\n\
                    cron = { tidy = \"every 5m\" }\n";
        let tasks = site(text).tasks.unwrap();
        assert_eq!(tasks.script, Path::new("/srv/www/bin/tasks.php"));
        assert_eq!(tasks.cron, [("tidy".to_owned(), Schedule::Every(300_000))]);
    }

    #[test]
    fn tasks_without_workers_are_an_error() {
        let text = format!("{APP}tasks.workers = 1\n");
        assert_error(&text, Kind::MissingKey, 3, "classic mode has no script for its tasks");
        let text = format!("{APP}tasks.cron = {{ tidy = \"0 3 * * *\" }}\n");
        assert_error(&text, Kind::Conflict, 3, "`workers` is 0");
        let text = format!("{APP}tasks.cron = {{ tidy = \"0 25 * * *\" }}\n");
        assert_error(&text, Kind::BadValue, 3, "`25` is not a valid hour");
    }
}
