//! Tasks that are dispatched: accepted, refused, in pieces.

use super::*;

#[test]
fn a_task_that_is_not_awaited_is_confirmed_with_its_id() {
    in_loop(async {
        let mut site = Site::new(config());
        let (first, second) = (site.accepted(MAIL).await, site.accepted(MAIL).await);
        assert_eq!((first.len(), second.len()), (16, 16));
        assert_ne!(first, second);
        let tag = site.next_task().await;
        site.respond(tag, 200, b"no requester waits for this").await;
        assert_eq!(site.reply(), None);
    });
}

#[test]
fn data_arrives_in_pieces_and_what_exceeds_its_length_is_cut() {
    in_loop(async {
        let mut site = Site::new(config());
        let id = site.dispatch(TaskCall { data_bytes: 10, ..AWAITED });
        site.send_operation(id, Call::FetchBody(b"01234"));
        assert_eq!(site.tasks.status().accepted, 0);
        site.send_operation(id, Call::FetchBody(b"56789 and more"));
        let tag = site.next_task().await;
        assert_eq!(site.worker.receive(), Some((FrameKind::RequestBody, tag)));
        assert_eq!(site.worker.frame, b"0123456789");
    });
}

#[test]
fn incomplete_tasks_of_an_exited_worker_are_forgotten() {
    in_loop(async {
        let mut site = Site::new(config());
        site.dispatch(TaskCall { data_bytes: 10, ..MAIL });
        assert!(!site.tasks.incoming.is_empty());
        reap(&site.app, 1);
        poll(&site.app);
        assert!(site.tasks.incoming.is_empty());
    });
}

#[test]
fn oversized_and_overlong_tasks_are_refused() {
    in_loop(async {
        let mut site = Site::new(config());
        let data_bytes = queue::MAX_DATA_BYTES as u32 + 1;
        for (call, expected) in [
            (TaskCall { data_bytes, ..MAIL }, Failure::TooLarge),
            (TaskCall { name: &[b'n'; 256], ..MAIL }, Failure::BadCall),
            (TaskCall { name: &[b'n'; 70_000], ..MAIL }, Failure::BadCall),
        ] {
            let operation = site.dispatch(call);
            let (id, Reply::Failed(failure, message)) = site.next_reply().await else { panic!() };
            assert_eq!((id, failure), (operation, expected), "{message}");
        }
        assert_eq!(site.tasks.status().accepted, 0);
        assert_eq!(site.dispatcher.state(&site.app), Some(State::Idle), "the worker survives");
    });
}

#[test]
fn tasks_that_exceed_the_memory_for_operations_are_refused() {
    in_loop(async {
        let mut site = Site::new(config());
        let mut refused = None;
        // Their data never arrives, but its memory is counted from the start.
        for _ in 0..10 {
            site.dispatch(TaskCall { data_bytes: 5 << 20, ..MAIL });
            refused = refused.or(site.reply());
        }
        let Some((_, Reply::Failed(failure, message))) = refused else { panic!("{refused:?}") };
        assert_eq!(failure, Failure::Busy);
        assert!(message.contains("limits.memory"), "{message}");
    });
}

#[test]
fn a_full_queue_refuses_tasks() {
    in_loop(async {
        let mut site = Site::new(config());
        for _ in 0..3 {
            site.accepted(MAIL).await;
        }
        let operation = site.dispatch(MAIL);
        let full = Reply::Failed(Failure::Busy, "the queue of tasks is full".into());
        assert_eq!(site.next_reply().await, (operation, full));
        assert_eq!((site.tasks.status().accepted, site.tasks.status().refused), (3, 1));
    });
}

#[test]
fn an_app_without_task_workers_refuses_tasks() {
    in_loop(async {
        let mut site = Site::new(config());
        site.app.set_operations(Rc::new(TaskCalls(None)));
        site.dispatch(MAIL);
        let (_, Reply::Failed(failure, message)) = site.next_reply().await else { panic!() };
        assert_eq!(failure, Failure::Busy);
        assert_eq!(message, "the app has no task workers: set workers in its [tasks]");
    });
}
