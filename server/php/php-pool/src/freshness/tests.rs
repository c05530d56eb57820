use super::*;

/// One whose snapshot depends on `options`, and the number that is settled.
fn taken() -> Arc<Freshness> {
    let freshness = Freshness::new();
    freshness.set_first(1, 300_000);
    freshness.booted(1, reading(&["options"]));
    freshness
}

fn reading(keys: &[&str]) -> BootRead {
    BootRead { keys: keys.iter().map(|key| (*key).to_owned()).collect(), ..BootRead::default() }
}

fn key(key: &str) -> Cause {
    Cause::Key(key.to_owned())
}

fn in_loop(test: impl FnOnce() + 'static) {
    outboard_reactor::testing::in_loop(async { test() });
}

#[test]
fn retirements_before_a_start_are_one() {
    in_loop(|| {
        let freshness = taken();
        assert_eq!(freshness.wanted(), 0);
        for _ in 0..1_000 {
            assert!(freshness.retire(None, Cause::Script));
            assert!(freshness.retire(Some("options"), key("options")));
        }
        assert_eq!((freshness.wanted(), freshness.status().retired), (1, 1));
        assert_eq!(freshness.begin_boot(), 1);
        assert!(freshness.retire(None, Cause::Script));
        assert_eq!(freshness.wanted(), 2, "the start may have read the old data");
        let last = freshness.status().last_cause;
        assert_eq!(last.as_deref(), Some("a script"));
    });
}

#[test]
fn only_keys_of_the_start_retire_its_snapshot() {
    in_loop(|| {
        let freshness = taken();
        assert!(!freshness.retire(Some("theme"), key("theme")));
        assert_eq!(freshness.wanted(), 0);
        assert!(freshness.retire(Some("options"), key("options")));
        assert_eq!(freshness.wanted(), 1);
    });
}

#[test]
fn a_key_counts_for_a_start_that_has_not_told_its_keys() {
    in_loop(|| {
        let freshness = taken();
        freshness.begin_boot();
        assert!(!freshness.retire(Some("theme"), key("theme")));
        assert!(!freshness.retire(Some("unrelated"), key("unrelated")));
        freshness.booted(2, reading(&["options", "theme"]));
        assert_eq!(freshness.end_boot(Some(2)), Some(key("theme")));
        freshness.begin_boot();
        freshness.booted(3, reading(&["options", "theme"]));
        assert_eq!(freshness.end_boot(Some(3)), None);
    });
}

#[test]
fn more_keys_than_are_noted_retire_whatever_is_read() {
    in_loop(|| {
        let freshness = taken();
        freshness.begin_boot();
        for number in 0..NOTED_KEYS_MAX {
            assert!(!freshness.retire(Some(&number.to_string()), Cause::Script));
        }
        assert!(freshness.retire(Some("one more"), key("one more")));
    });
}

#[test]
fn without_a_snapshot_nothing_is_retired() {
    in_loop(|| {
        let freshness = Freshness::new();
        assert!(!freshness.retire(None, Cause::Administrator));
        assert_eq!(freshness.wanted(), 0);
        let snapshots = Snapshots::default();
        snapshots.add(&freshness);
        let other = taken();
        snapshots.add(&other);
        assert_eq!(snapshots.retire(None, &Cause::Administrator), 1);
        drop(other);
        assert_eq!(snapshots.retire(None, &Cause::Administrator), 0);
    });
}

#[test]
fn a_start_that_fails_leaves_what_the_present_one_has_read() {
    in_loop(|| {
        let freshness = taken();
        freshness.begin_boot();
        freshness.booted(2, reading(&["other"]));
        freshness.end_boot(Some(2));
        freshness.set_failed(Some(2));
        assert!(freshness.retire(Some("options"), key("options")));
        freshness.begin_boot();
        assert!(!freshness.retire(Some("other"), key("other")));
        let status = freshness.status();
        assert_eq!((status.failures, status.keys), (1, vec!["options".to_owned()]));
    });
}

#[test]
fn a_retirement_by_a_script_does_not_wait_for_files() {
    in_loop(|| {
        let freshness = taken();
        let file = Cause::File(PathBuf::from("/a.php"));
        freshness.retire_again(file.clone());
        assert_eq!((freshness.wanted(), freshness.begin_deployment()), (1, Some(1)));
        assert!(!freshness.end_deployment(1_000_000, false), "files change");
        assert!(freshness.retire(None, Cause::Script));
        assert_eq!(freshness.wanted(), 2);
        assert!(freshness.end_deployment(1_000_000, false));
        freshness.begin_boot();
        freshness.retire_again(file.clone());
        assert!(freshness.retire(None, Cause::Script));
        assert_eq!((freshness.wanted(), freshness.begin_deployment()), (3, None));
        freshness.retire_again(file);
        assert_eq!(freshness.state().pending, Some(Cause::Script));
    });
}

#[test]
fn files_that_change_for_long_are_one_retirement() {
    in_loop(|| {
        let freshness = taken();
        freshness.retire_again(Cause::File(PathBuf::from("/a.php")));
        freshness.begin_deployment();
        assert!(freshness.end_deployment(0, false));
        assert_eq!((freshness.wanted(), freshness.status().retired), (2, 1));
    });
}

#[test]
fn a_snapshot_is_never_used_beyond_its_age() {
    in_loop(|| {
        let freshness = Freshness::new();
        freshness.set_first(1, 1_000);
        freshness.booted(1, reading(&[]));
        assert_eq!((freshness.ages_at_ms(), freshness.wanted()), (None, 0), "not used yet");
        assert!(freshness.ages_at_ms().is_some_and(|at_ms| at_ms < now_ms() + 1_000));
        freshness.state().reads.get_mut(&1).unwrap().began_ms = 0;
        freshness.state().max_age_ms = 0;
        assert_eq!(freshness.wanted(), 1);
        assert_eq!((freshness.wanted(), freshness.pending()), (1, Some(Cause::Age)));
        freshness.begin_boot();
        freshness.booted(2, BootRead { max_age_ms: Some(0), ..reading(&[]) });
        freshness.state().max_age_ms = 1_000;
        freshness.set_current(Some(2));
        assert_eq!(freshness.wanted(), 2, "the script allows less");
    });
}

#[test]
fn what_may_have_changed_without_notice_may_be_old() {
    in_loop(|| {
        let freshness = taken();
        assert!(
            freshness.may_be_old() && !freshness.is_watching(),
            "its files are not watched yet"
        );
        freshness.is_not_watched(1);
        assert!(freshness.may_be_old() && freshness.is_watching());
    });
}

#[test]
fn a_file_that_changes_all_the_time_retires_each_time() {
    in_loop(|| {
        let freshness = taken();
        for number in 1..=50 {
            freshness.files_differ(1, PathBuf::from("/a.php"));
            assert_eq!(freshness.wanted(), number);
            freshness.begin_boot();
        }
    });
}
