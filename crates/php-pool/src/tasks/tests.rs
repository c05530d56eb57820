//! Tests of tasks with two stand-ins: a worker that dispatches tasks, and a task worker.

use super::*;
use crate::pool::tests::{StandIn, fill_queue, in_loop, poll, pool_of, reap, sequential};
use outboard_buffer::Memory;
use outboard_entity_store::{Durability, NamespaceSettings, Settings, Store};
use outboard_log::{Opener, Sink, Target};
use outboard_reactor::yield_now;
use outboard_ring::frame::FrameKind;
use outboard_ring::operation::{Call, Completion, Failure, Operation, Part};
use outboard_ring::request::{Field, RequestView};
use outboard_ring::response::ResponseHead;
use outboard_ring::task::TaskCall;
use outboard_supervisor::worker::lifecycle::State;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const MAIL: TaskCall<'static> =
    TaskCall { name: b"mail", data_bytes: 0, delay_ms: 0, is_awaited: false, retries: None };
const AWAITED: TaskCall<'static> = TaskCall { is_awaited: true, ..MAIL };

fn config() -> config::Tasks {
    config::Tasks {
        workers: 1,
        concurrency: 1,
        script: "/t.php".into(),
        queue_length: 3,
        max_queue_bytes: 1 << 20,
        max_retries: 0,
        backoff_ms: 0,
        timeout_ms: 1_000,
        kv_namespace: None,
        cron: Vec::new(),
    }
}

/// A completion, without borrows.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Result(String),
    Failed(Failure, String),
}

/// An app with task workers.
struct Site {
    app: Rc<Pool>,
    dispatcher: StandIn,
    tasks: Rc<Tasks>,
    worker: StandIn,
    last_operation: u32,
}

impl Site {
    fn new(config: config::Tasks) -> Self {
        Self::with_journal(config, None)
    }

    fn with_journal(config: config::Tasks, journal: Option<TaskJournal>) -> Self {
        let (app, tasks) = (pool_of(sequential()), start(config, journal));
        let memory = Memory::new(64 << 20).of_app("site").operations;
        app.set_memory(memory);
        app.set_operations(operations(Rc::new(NoOperations), Some(tasks.clone())));
        let dispatcher = StandIn::join(&app, 1);
        let worker = StandIn::join(&tasks.pool, 1);
        Self { app, dispatcher, tasks, worker, last_operation: 0 }
    }

    /// Runs other tasks of the loop until the condition holds.
    async fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        let started = Instant::now();
        while !condition(self) {
            assert!(started.elapsed() < Duration::from_secs(20), "{what}");
            yield_now().await;
            poll(&self.app);
            poll(&self.tasks.pool);
        }
    }

    /// Runs everything that is ready.
    async fn settle(&mut self) {
        let mut turns = 0;
        self.until("", |_| {
            turns += 1;
            turns > 10
        })
        .await;
    }

    fn send_operation(&mut self, id: Tag, call: Call<'_>) {
        let mut operation = Vec::new();
        Operation { id, call }.encode(&mut operation);
        self.dispatcher.send(FrameKind::Operation, Tag::default(), &operation);
        poll(&self.app);
        poll(&self.app);
    }

    fn dispatch(&mut self, call: TaskCall<'_>) -> Tag {
        self.last_operation += 1;
        let id = Tag { slot: 0, generation: self.last_operation };
        self.send_operation(id, Call::Task(call));
        id
    }

    /// The next completion, with its operation.
    fn reply(&mut self) -> Option<(Tag, Reply)> {
        let (kind, _) = self.dispatcher.receive()?;
        assert_eq!(kind, FrameKind::Completion);
        let Completion { id, part } = Completion::decode(&self.dispatcher.frame).unwrap();
        let reply = match part {
            Part::Whole(_, text) => Reply::Result(String::from_utf8(text.to_vec()).unwrap()),
            Part::Failed { failure, message } => Reply::Failed(failure, message.to_owned()),
            part => panic!("{part:?}"),
        };
        Some((id, reply))
    }

    async fn next_reply(&mut self) -> (Tag, Reply) {
        let mut reply = None;
        self.until("a reply", |site| {
            reply = site.reply();
            reply.is_some()
        })
        .await;
        reply.unwrap()
    }

    /// Dispatches a task that is accepted; its id.
    async fn accepted(&mut self, call: TaskCall<'_>) -> String {
        let operation = self.dispatch(call);
        match self.next_reply().await {
            (id, Reply::Result(task)) if id == operation => task,
            reply => panic!("{reply:?}"),
        }
    }

    /// Waits until the task worker has a task, and starts it.
    async fn next_task(&mut self) -> Tag {
        let busy = |site: &mut Self| site.tasks.pool.status().in_flight > 0;
        self.until("a task", busy).await;
        self.worker.start_next()
    }

    async fn respond(&mut self, tag: Tag, status: u16, text: &[u8]) {
        let mut head = Vec::new();
        ResponseHead::encode_status(&mut head, status, b"");
        self.worker.send(FrameKind::Head, tag, &head);
        self.worker.send(FrameKind::Body, tag, text);
        self.worker.finish(tag, false);
        self.settle().await;
    }

    /// Replaces the task worker, which has died.
    async fn lose_worker(&mut self, number: u64) {
        reap(&self.tasks.pool, number);
        self.settle().await;
        self.worker = StandIn::join(&self.tasks.pool, number + 1);
    }
}

fn start(config: config::Tasks, journal: Option<TaskJournal>) -> Rc<Tasks> {
    let sink = Rc::new(Sink::open(Target::Off, Opener::default()).unwrap());
    let log = Rc::new(ErrorLog::new(sink, Level::Error));
    let memory = Memory::new(64 << 20).of_app("site").operations;
    Tasks::start("site", config, (pool_of(sequential()), memory), journal, log)
}

/// A store in memory; its directory is removed at the end.
struct JournalStore {
    store: Store,
    directory: PathBuf,
}

impl JournalStore {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outboard-php-pool-tasks-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let namespaces = vec![NamespaceSettings::new("tasks", Durability::Memory)];
        let settings = Settings { namespaces, ..Settings::new(directory.clone()) };
        Self { store: Store::open(&settings).unwrap(), directory }
    }

    fn journal(&self, app: &str) -> TaskJournal {
        TaskJournal::new(self.store.namespace("tasks").unwrap().clone(), app)
    }
}

impl Drop for JournalStore {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

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
        assert_eq!(site.tasks.incoming.borrow().len(), 1);
        reap(&site.app, 1);
        poll(&site.app);
        assert_eq!(site.tasks.incoming.borrow().len(), 0);
    });
}

#[test]
fn oversized_and_overlong_tasks_are_refused() {
    in_loop(async {
        let mut site = Site::new(config());
        let data_bytes = MAX_DATA_BYTES as u32 + 1;
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
fn an_app_without_task_workers_refuses_tasks_and_passes_on_the_rest() {
    in_loop(async {
        let mut site = Site::new(config());
        site.app.set_operations(operations(Rc::new(NoOperations), None));
        site.dispatch(MAIL);
        let (_, Reply::Failed(failure, message)) = site.next_reply().await else { panic!() };
        assert_eq!(failure, Failure::Busy);
        assert_eq!(message, "the app has no task workers: set workers in its [tasks]");
        site.send_operation(Tag::default(), Call::Forget);
        assert_eq!(site.reply(), None);
    });
}

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
