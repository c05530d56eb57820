//! Tests of tasks with two stand-ins: a worker that dispatches tasks, and a task worker.

mod attempts;
mod hand_over;
mod incoming;
mod journal;

use super::*;
use crate::pool::operations::Operations;
use crate::pool::tests::{StandIn, fill_queue, in_loop, poll, pool_of, reap, sequential};
use crate::worker_id::WorkerId;
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
        timezone: config::TimeZone::UTC,
    }
}

/// A completion, without borrows.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Result(String),
    Failed(Failure, String),
}

/// The operations of an app, as far as they are tasks.
#[derive(Debug)]
struct TaskCalls(Option<Rc<Tasks>>);

impl Operations for TaskCalls {
    fn begin(&self, requester: Requester, operation: &Operation<'_>) {
        match (&operation.call, &self.0) {
            (Call::Task(call), Some(tasks)) => tasks.receive_call(requester, operation.id, call),
            (Call::Task(_), None) => refuse(&requester, operation.id),
            (Call::FetchBody(bytes), Some(tasks)) => {
                tasks.receive_data(requester.worker(), operation.id, bytes);
            }
            _ => {}
        }
    }

    fn forget(&self, worker: WorkerId) {
        self.0.iter().for_each(|tasks| tasks.forget(worker));
    }

    fn has_any(&self, worker: WorkerId) -> bool {
        self.0.as_ref().is_some_and(|tasks| tasks.has_any(worker))
    }
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
        app.set_operations(Rc::new(TaskCalls(Some(tasks.clone()))));
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
        Operation { id, span: 0, call }.encode(&mut operation);
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
    Tasks::start("site", config, (pool_of(sequential()), None, memory), journal, log)
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
