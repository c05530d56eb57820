//! The journal: records of tasks, and their recovery.

use super::*;

#[test]
fn journaled_tasks_are_recovered_until_they_are_finished() {
    in_loop(async {
        let store = JournalStore::new();
        let mut site = Site::with_journal(config(), Some(store.journal("site")));
        let first = site.accepted(MAIL).await;
        let second = site.accepted(TaskCall { delay_ms: 1_000_000, ..MAIL }).await;
        let tag = site.next_task().await;
        site.respond(tag, 200, b"").await;
        site.until("the record is removed", |site| !site.tasks.is_writing()).await;
        let (recovered, invalid) = store.journal("site").recover().await.unwrap();
        let ids: Vec<String> =
            recovered.iter().map(|(task, _)| format!("{:016x}", task.id)).collect();
        assert_eq!((ids, invalid), (vec![second], 0));
        assert_ne!(first, format!("{:016x}", recovered[0].0.id));
        assert!(recovered[0].1 > Wall::now().unix_us / 1000 + 900_000, "the due time is stored");
        assert_eq!(store.journal("other").recover().await.unwrap().0, []);
    });
}

#[test]
fn a_new_gateway_resumes_the_tasks_of_the_last_one() {
    in_loop(async {
        let store = JournalStore::new();
        {
            let mut site = Site::with_journal(config(), Some(store.journal("site")));
            site.accepted(TaskCall { retries: Some(3), ..MAIL }).await;
            site.next_task().await;
        }
        let mut site = Site::with_journal(config(), Some(store.journal("site")));
        site.tasks.resume(None);
        let tag = site.next_task().await;
        site.respond(tag, 200, b"").await;
        assert_eq!(site.tasks.status().done, 1);
        site.until("the record is removed", |site| !site.tasks.is_writing()).await;
        assert_eq!(store.journal("site").recover().await.unwrap(), (Vec::new(), 0));
    });
}

#[test]
fn a_reload_with_the_same_journal_resumes_nothing() {
    in_loop(async {
        let store = JournalStore::new();
        let mut site = Site::with_journal(config(), Some(store.journal("site")));
        site.accepted(TaskCall { delay_ms: 1_000_000, ..MAIL }).await;
        let successor = start(config(), Some(store.journal("site")));
        successor.resume(Some(&site.tasks));
        site.tasks.hand_over(&successor);
        site.settle().await;
        assert_eq!(successor.status().waiting, 1, "once by the queue, not again by the journal");
    });
}

#[test]
fn awaited_tasks_are_not_journaled() {
    in_loop(async {
        let store = JournalStore::new();
        let mut site = Site::with_journal(config(), Some(store.journal("site")));
        site.dispatch(AWAITED);
        site.next_task().await;
        assert_eq!(store.journal("site").recover().await.unwrap(), (Vec::new(), 0));
    });
}
