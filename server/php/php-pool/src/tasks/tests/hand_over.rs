//! Reloads and the stop.

use super::*;

#[test]
fn a_successor_takes_over_queued_tasks_and_their_requesters() {
    in_loop(async {
        let mut old = Site::new(config());
        old.accepted(MAIL).await;
        let running = old.next_task().await;
        let operation = old.dispatch(AWAITED);
        let tasks = start(config(), None);
        let new_worker = StandIn::join(&tasks.pool, 1);
        old.tasks.hand_over(&tasks);
        assert_eq!((old.tasks.status().waiting, tasks.status().waiting), (0, 1));
        old.respond(running, 200, b"finished where it was started").await;
        assert_eq!((old.tasks.status().done, tasks.status().done), (1, 0));
        let (tag, old_tasks) = {
            old.worker = new_worker;
            let old_tasks = std::mem::replace(&mut old.tasks, tasks);
            (old.next_task().await, old_tasks)
        };
        old.respond(tag, 200, b"by the successor").await;
        assert_eq!(old.next_reply().await, (operation, Reply::Result("by the successor".into())));
        assert!(old_tasks.is_finished());
    });
}

#[test]
fn new_tasks_of_an_old_generation_go_to_the_successor() {
    in_loop(async {
        let mut site = Site::new(config());
        let (first, second) = (start(config(), None), start(config(), None));
        site.tasks.hand_over(&first);
        first.hand_over(&second);
        site.dispatch(MAIL);
        assert_eq!((second.status().accepted, first.status().accepted), (1, 0));
        assert_eq!(site.tasks.status().accepted, 0);
    });
}

#[test]
fn a_stop_fails_awaited_tasks_and_refuses_new_ones() {
    in_loop(async {
        let mut site = Site::new(config());
        site.accepted(MAIL).await;
        let running = site.next_task().await;
        let awaited = site.dispatch(AWAITED);
        site.tasks.stop();
        let stopping = || Reply::Failed(Failure::Busy, STOPPING.into());
        assert_eq!(site.next_reply().await, (awaited, stopping()));
        let refused = site.dispatch(MAIL);
        assert_eq!(site.next_reply().await, (refused, stopping()));
        site.respond(running, 200, b"").await;
        assert_eq!((site.tasks.status().done, site.tasks.status().waiting), (1, 0));
    });
}
