//! Attempts: requests to task workers, retries and results.

use super::*;

#[test]
fn a_task_is_a_request_with_its_name_and_its_result_is_sent() {
    in_loop(async {
        let mut site = Site::new(config());
        let operation = site.dispatch(AWAITED);
        let tag = site.next_task().await;
        let view = RequestView::decode(&site.worker.frame).unwrap();
        assert_eq!(
            (view.field(Field::Method), view.field(Field::Uri)),
            (&b"TASK"[..], &b"/mail"[..])
        );
        assert_eq!(site.tasks.status().running, 1);
        site.respond(tag, 200, b"sent").await;
        assert_eq!(site.next_reply().await, (operation, Reply::Result("sent".into())));
        let status = site.tasks.status();
        assert_eq!((status.accepted, status.done, status.running, status.bytes), (1, 1, 0, 0));
    });
}

#[test]
fn no_more_tasks_run_than_the_workers_have_room_for() {
    in_loop(async {
        let mut site = Site::new(config());
        site.accepted(MAIL).await;
        site.accepted(MAIL).await;
        let tag = site.next_task().await;
        let status = site.tasks.status();
        assert_eq!((status.running, status.waiting), (1, 1));
        site.respond(tag, 200, b"").await;
        site.next_task().await;
        assert_eq!(site.tasks.status().waiting, 0);
    });
}

#[test]
fn a_failed_task_is_retried_and_then_given_up() {
    in_loop(async {
        let mut site = Site::new(config());
        let operation = site.dispatch(TaskCall { retries: Some(2), ..AWAITED });
        for attempt in 1..=3 {
            let tag = site.next_task().await;
            let status = site.tasks.status();
            assert_eq!((status.retried, status.given_up), (attempt - 1, 0));
            site.respond(tag, 500, b"RuntimeException: no mail").await;
        }
        let failed = Reply::Failed(Failure::Task, "RuntimeException: no mail".into());
        assert_eq!(site.next_reply().await, (operation, failed));
        let status = site.tasks.status();
        assert_eq!((status.given_up, status.done, status.waiting), (1, 0, 0));
    });
}

#[test]
fn a_retry_waits_for_the_back_off() {
    in_loop(async {
        let backoff_ms = 1_000_000;
        let mut site = Site::new(config::Tasks { max_retries: 1, backoff_ms, ..config() });
        site.accepted(MAIL).await;
        let tag = site.next_task().await;
        site.respond(tag, 500, b"").await;
        let status = site.tasks.status();
        assert_eq!((status.retried, status.waiting, status.running), (1, 1, 0));
        let due_ms = site.tasks.queue.borrow().due_ms().unwrap();
        assert!(due_ms > now_ms() + 900_000);
    });
}

#[test]
fn a_lost_worker_costs_no_attempt() {
    in_loop(async {
        let mut site = Site::new(config());
        let operation = site.dispatch(AWAITED);
        site.next_task().await;
        site.lose_worker(1).await;
        let tag = site.next_task().await;
        site.respond(tag, 200, b"done").await;
        assert_eq!(site.next_reply().await, (operation, Reply::Result("done".into())));
        let status = site.tasks.status();
        assert_eq!((status.lost, status.retried, status.done), (1, 1, 1));
    });
}

#[test]
fn a_task_that_the_pool_does_not_accept_waits() {
    in_loop(async {
        let backoff_ms = 1_000_000;
        let mut site = Site::new(config::Tasks { backoff_ms, ..config() });
        reap(&site.tasks.pool, 1);
        fill_queue(&site.tasks.pool);
        site.accepted(MAIL).await;
        site.settle().await;
        let status = site.tasks.status();
        assert_eq!((status.waiting, status.retried, status.given_up), (1, 1, 0));
    });
}

#[test]
fn a_delayed_task_is_not_started_early() {
    in_loop(async {
        let mut site = Site::new(config());
        site.accepted(TaskCall { delay_ms: 1_000_000, ..MAIL }).await;
        site.settle().await;
        assert_eq!((site.tasks.status().waiting, site.tasks.status().running), (1, 0));
    });
}
