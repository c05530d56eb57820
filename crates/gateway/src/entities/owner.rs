//! What of the entity store is an app's own.
//!
//! Made with each generation, asked for every operation of the app's workers. Invariants: PHP
//! reaches the namespaces that its app was given and no other; the records of an app's tasks, which
//! lie under `tasks/APP/`, are that app's wherever they are kept.

use super::batch::Batch;
use outboard_config as config;
use std::ops::Bound;

/// Before the names of the records of all tasks ([`outboard_php_pool::tasks::journal`]).
const TASKS: &[u8] = b"tasks/";

/// An app, as far as the store is concerned.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    app: String,
    /// `None`: all.
    namespaces: Option<Vec<String>>,
    /// Where tasks of other apps are kept.
    tasks_of_others: Vec<String>,
}

impl Owner {
    /// What is the app's under this configuration.
    pub(crate) fn of(app: &config::App, config: &config::Config) -> Self {
        let others = config.apps.iter().filter(|other| other.name != app.name);
        let tasks_of_others =
            others.filter_map(|other| other.tasks.as_ref()?.kv_namespace.clone()).collect();
        Self { app: app.name.clone(), namespaces: app.kv_namespaces.clone(), tasks_of_others }
    }

    /// Whether its workers may have this done; the text is for the script that asked.
    pub(super) fn may(&self, namespace: &str, batch: Option<&Batch<'_>>) -> Result<(), String> {
        let is_ours = |namespaces: &Vec<String>| namespaces.iter().any(|name| name == namespace);
        if !self.namespaces.as_ref().is_none_or(is_ours) {
            return Err(format!(
                "the app `{}` may not use the namespace `{namespace}`: with several apps each \
                 names its own; add namespaces = [\"{namespace}\"] to [app.{}]",
                self.app, self.app
            ));
        }
        let has_others = self.tasks_of_others.iter().any(|name| name == namespace);
        if has_others && batch.is_some_and(|batch| self.is_of_others(batch)) {
            return Err("these are the tasks of another app".to_owned());
        }
        Ok(())
    }

    fn is_of_others(&self, batch: &Batch<'_>) -> bool {
        let own = [TASKS, self.app.as_bytes(), b"/"].concat();
        let is_foreign = |id: &[u8]| id.starts_with(TASKS) && !id.starts_with(&own);
        match batch {
            Batch::Reads(ids) => ids.iter().any(|id| is_foreign(id)),
            Batch::Writes(writes) => writes.iter().any(|write| is_foreign(&write.id)),
            Batch::Scan { start, end, .. } => is_across(start, end) && !is_within(start, end, &own),
        }
    }
}

/// Whether some name that begins with [`TASKS`] lies between; `tasks0` is the first behind them.
fn is_across(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> bool {
    let begins_before = match start {
        Bound::Included(start) | Bound::Excluded(start) => start.as_slice() < &b"tasks0"[..],
        Bound::Unbounded => true,
    };
    let ends_behind = match end {
        Bound::Included(end) | Bound::Excluded(end) => end.as_slice() > TASKS,
        Bound::Unbounded => true,
    };
    begins_before && ends_behind
}

/// Whether all that lies between begins with `prefix`, whose last byte is a slash.
fn is_within(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>, prefix: &[u8]) -> bool {
    let mut behind = prefix.to_vec();
    behind.pop();
    behind.push(b'0');
    let (Bound::Included(start) | Bound::Excluded(start)) = start else { return false };
    let Bound::Excluded(end) = end else { return false };
    start.as_slice() >= prefix && *end <= behind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        let namespaces = Some(vec!["mine".to_owned(), "shared".to_owned()]);
        Owner { app: "a".to_owned(), namespaces, tasks_of_others: vec!["shared".to_owned()] }
    }

    fn scan(start: &str, end: Option<&str>) -> Batch<'static> {
        let start = Bound::Included(start.as_bytes().to_vec());
        let end = end.map_or(Bound::Unbounded, |end| Bound::Excluded(end.as_bytes().to_vec()));
        Batch::Scan { most_bytes: 1, start, end }
    }

    #[test]
    fn an_app_reaches_its_own_namespaces_and_no_other() {
        let reads = Batch::Reads(vec![b"x"]);
        assert_eq!(owner().may("mine", Some(&reads)), Ok(()));
        assert!(owner().may("yours", Some(&reads)).is_err());
        assert!(owner().may("yours", None).is_err());
        assert!(owner().may("default", Some(&reads)).is_err());
        assert_eq!(Owner::default().may("default", Some(&reads)), Ok(()));
    }

    #[test]
    fn tasks_in_a_shared_namespace_are_their_apps_own() {
        let may = |batch| owner().may("shared", Some(&batch)).is_ok();
        assert!(may(Batch::Reads(vec![b"x", b"tasks/a/1", b"task", b"tasks"])));
        assert!(!may(Batch::Reads(vec![b"x", b"tasks/b/1"])));
        assert!(!may(Batch::Reads(vec![b"tasks/ab/1"])));
        assert!(may(scan("tasks/a/", Some("tasks/a0"))));
        assert!(may(scan("a", Some("b"))));
        assert!(may(scan("tasks0", None)));
        for (start, end) in [
            ("", None),
            ("a", None),
            ("tasks/b", Some("tasks/c")),
            ("tasks/a/", Some("tasks/b")),
            ("tasks/", Some("tasks/a0")),
            ("tasks", Some("tasks/a/")),
        ] {
            assert!(!may(scan(start, end)), "{start} {end:?}");
        }
        // Where no other app keeps tasks nothing is reserved.
        assert!(owner().may("mine", Some(&scan("", None))).is_ok());
    }
}
