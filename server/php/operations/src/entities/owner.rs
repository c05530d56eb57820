//! [`Owner`]: the rights of an app in the entity store.
//!
//! Created with each generation, checked for every operation of the app's workers. Invariants: PHP
//! reaches only the namespaces of its app; only the app itself reaches the records of its tasks,
//! whose ids start with `tasks/APP/`, in every namespace.

use super::batch::Batch;
use outboard_config as config;
use std::ops::Bound;

/// The prefix of the ids of all tasks' records ([`outboard_php_pool::tasks::journal`]).
const TASKS: &[u8] = b"tasks/";

/// See the module.
#[derive(Debug, Default)]
pub struct Owner {
    app: String,
    /// `None`: all.
    namespaces: Option<Vec<String>>,
    /// The namespaces with tasks of other apps.
    tasks_of_others: Vec<String>,
}

impl Owner {
    /// The rights of an app under this configuration.
    pub fn of(app: &config::App, config: &config::Config) -> Self {
        let others = config.apps.iter().filter(|other| other.name != app.name);
        let tasks_of_others =
            others.filter_map(|other| other.tasks.as_ref()?.kv_namespace.clone()).collect();
        Self { app: app.name.clone(), namespaces: app.kv_namespaces.clone(), tasks_of_others }
    }

    /// Whether its workers may execute the operation; the error is for the script.
    pub(super) fn check(&self, namespace: &str, batch: Option<&Batch<'_>>) -> Result<(), String> {
        let is_own = |namespaces: &Vec<String>| namespaces.iter().any(|name| name == namespace);
        if !self.namespaces.as_ref().is_none_or(is_own) {
            return Err(format!(
                "the app `{}` may not use the namespace `{namespace}`: with several apps each \
                 lists its own; add kv_namespaces = [\"{namespace}\"] to [app.{}]",
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
            Batch::Scan { start, end, .. } => {
                overlaps_tasks(start, end) && !is_within(start, end, &own)
            }
        }
    }
}

/// Whether the range has an id that starts with [`TASKS`]; `tasks0` is the first id after them.
fn overlaps_tasks(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> bool {
    let begins_before = match start {
        Bound::Included(start) | Bound::Excluded(start) => start.as_slice() < &b"tasks0"[..],
        Bound::Unbounded => true,
    };
    let ends_after = match end {
        Bound::Included(end) | Bound::Excluded(end) => end.as_slice() > TASKS,
        Bound::Unbounded => true,
    };
    begins_before && ends_after
}

/// Whether all ids of the range start with `prefix`, whose last byte is a slash.
fn is_within(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>, prefix: &[u8]) -> bool {
    let mut after = prefix.to_vec();
    after.pop();
    after.push(b'0');
    let (Bound::Included(start) | Bound::Excluded(start)) = start else { return false };
    let Bound::Excluded(end) = end else { return false };
    start.as_slice() >= prefix && *end <= after
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
        Batch::Scan { max_bytes: 1, start, end }
    }

    #[test]
    fn an_app_reaches_its_own_namespaces_and_no_other() {
        let reads = Batch::Reads(vec![b"x"]);
        assert_eq!(owner().check("mine", Some(&reads)), Ok(()));
        assert!(owner().check("yours", Some(&reads)).is_err());
        assert!(owner().check("yours", None).is_err());
        assert!(owner().check("default", Some(&reads)).is_err());
        assert_eq!(Owner::default().check("default", Some(&reads)), Ok(()));
    }

    #[test]
    fn tasks_in_a_shared_namespace_are_their_apps_own() {
        let is_allowed = |batch| owner().check("shared", Some(&batch)).is_ok();
        assert!(is_allowed(Batch::Reads(vec![b"x", b"tasks/a/1", b"task", b"tasks"])));
        assert!(!is_allowed(Batch::Reads(vec![b"x", b"tasks/b/1"])));
        assert!(!is_allowed(Batch::Reads(vec![b"tasks/ab/1"])));
        assert!(is_allowed(scan("tasks/a/", Some("tasks/a0"))));
        assert!(is_allowed(scan("a", Some("b"))));
        assert!(is_allowed(scan("tasks0", None)));
        for (start, end) in [
            ("", None),
            ("a", None),
            ("tasks/b", Some("tasks/c")),
            ("tasks/a/", Some("tasks/b")),
            ("tasks/", Some("tasks/a0")),
            ("tasks", Some("tasks/a/")),
        ] {
            assert!(!is_allowed(scan(start, end)), "{start} {end:?}");
        }
        // In a namespace without tasks of other apps, no id is reserved.
        assert!(owner().check("mine", Some(&scan("", None))).is_ok());
    }
}
