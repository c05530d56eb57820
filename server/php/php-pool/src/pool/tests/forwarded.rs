//! Operations that the first thread carries out for the workers of another.

use super::threads::Threads;
use super::*;
use crate::pool::operations::{ForwardedOperations, Gone, Operations};
use outboard_buffer::Memory;
use outboard_reactor::{spawn, yield_now};
use outboard_ring::operation::{
    Call, Completion, EntitiesCall, Failure, FetchCall, FetchOptions, FetchedHead, Operation, Part,
};
use outboard_ring::task::TaskCall;
use std::task::Poll;

const ID: Tag = Tag { slot: 3, generation: 4 };
const TASK_CALL: TaskCall<'static> =
    TaskCall { name: b"mail", data_bytes: 0, delay_ms: 0, is_awaited: true, retries: None };
const TASK: Call<'static> = Call::Task(TASK_CALL);
const HEAD: FetchedHead<'static> =
    FetchedHead { status: 200, http_version: 1, url: b"", headers: b"" };

fn entities() -> Call<'static> {
    Call::Entities(EntitiesCall { namespace: b"kv", batch_bytes: 2 })
}

fn fetch(url: &[u8]) -> Call<'_> {
    let options = FetchOptions { verify: true, decompress: true, http2: true };
    Call::Fetch(FetchCall {
        url,
        method: b"GET",
        headers: b"",
        body_bytes: 0,
        connect_timeout_ms: 1,
        timeout_ms: 1,
        max_body_bytes: 1 << 20,
        max_redirects: 0,
        retries: 0,
        options,
    })
}

/// Stores requesters and forgotten workers.
#[derive(Debug, Default)]
struct Recorder {
    requesters: RefCell<Vec<Requester>>,
    forgotten: RefCell<Vec<WorkerId>>,
}

impl Recorder {
    fn count(&self) -> usize {
        self.requesters.borrow().len()
    }

    fn last(&self) -> Requester {
        self.requesters.borrow().last().expect("an operation was begun").clone()
    }
}

impl Operations for Recorder {
    fn begin(&self, requester: Requester, _: &Operation<'_>) {
        self.requesters.borrow_mut().push(requester);
    }

    fn forget(&self, worker: WorkerId) {
        self.forgotten.borrow_mut().push(worker);
    }

    fn has_any(&self, _: WorkerId) -> bool {
        false
    }
}

/// A lead, another thread, and a worker there.
struct Site {
    threads: Threads,
    worker: StandIn,
    /// The operations of the lead.
    lead: Rc<Recorder>,
    /// Those of the other thread that are not forwarded.
    local: Rc<Recorder>,
}

impl Site {
    fn new() -> Self {
        let threads = Threads::sequential(2);
        let (lead, local) = (Rc::<Recorder>::default(), Rc::<Recorder>::default());
        let shard = threads.pools[1].core.shard.clone();
        threads.pools[0].set_memory(Memory::new(64 << 20).of_app("site").operations);
        threads.pools[0].set_operations(lead.clone());
        threads.pools[1].set_operations(ForwardedOperations::before(local.clone(), shard));
        let worker = StandIn::join_forked(&threads.pools[1], 2);
        Self { threads, worker, lead, local }
    }

    fn request(&mut self, call: Call<'_>) {
        self.worker.request(&self.threads.pools[1], ID, call);
    }

    /// Requests it, and returns the lead's way to the worker.
    async fn requester(&mut self, call: Call<'_>) -> Requester {
        self.request(call);
        self.threads.settle().await;
        self.lead.last()
    }

    /// The parts of the completions that the worker can read now: their names and bodies.
    fn read(&mut self) -> (Vec<&'static str>, Vec<u8>) {
        let (mut names, mut bytes) = (Vec::new(), Vec::new());
        while let Some(Completion { id, part }) = self.worker.completion(&self.threads.pools[1]) {
            assert_eq!(id, ID);
            names.push(match part {
                Part::Whole(_, body) => {
                    bytes.extend_from_slice(body);
                    "whole"
                }
                Part::Body(body) => {
                    bytes.extend_from_slice(body);
                    "body"
                }
                Part::Head(_) => "head",
                Part::End => "end",
                Part::Failed { .. } => "failed",
                _ => "other",
            });
        }
        (names, bytes)
    }

    fn can_be_lent(&self) -> bool {
        self.threads.pools[1].dispatcher.lend_idle(0);
        self.threads.pools[1].core.members.borrow().roster.all().next().is_none()
    }
}

fn whole(body: &[u8]) -> Completion<'_> {
    Completion { id: ID, part: Part::Whole(HEAD, body) }
}

#[test]
fn tasks_and_records_are_the_leads_and_all_else_is_not() {
    in_loop(async {
        for (call, is_forwarded) in [
            (TASK, true),
            (entities(), true),
            (fetch(b"http://127.0.0.1/"), false),
            (Call::RetireSnapshot(b""), false),
            (Call::Forget, false),
            (Call::FetchBody(b"x"), false),
        ] {
            let mut site = Site::new();
            site.request(call);
            site.threads.settle().await;
            let counts = (site.lead.count(), site.local.count());
            assert_eq!(counts, if is_forwarded { (1, 0) } else { (0, 1) });
        }
    });
}

#[test]
fn a_completion_reaches_the_worker_which_can_be_lent_then() {
    in_loop(async {
        let mut site = Site::new();
        let requester = site.requester(TASK).await;
        assert!(!site.can_be_lent());
        requester.send(&whole(b"done")).unwrap();
        site.threads.settle().await;
        assert_eq!(site.read(), (vec!["whole"], b"done".to_vec()));
        assert!(site.can_be_lent());
    });
}

#[test]
fn more_of_an_operation_goes_to_the_lead_until_it_is_complete() {
    in_loop(async {
        let mut site = Site::new();
        let requester = site.requester(entities()).await;
        site.request(Call::FetchBody(b"x"));
        site.threads.settle().await;
        assert_eq!((site.lead.count(), site.local.count()), (2, 0));
        requester.send(&whole(b"")).unwrap();
        site.threads.settle().await;
        site.request(Call::FetchBody(b"y"));
        site.threads.settle().await;
        assert_eq!((site.lead.count(), site.local.count()), (2, 1));
    });
}

#[test]
fn an_operation_that_the_worker_forgets_is_open_no_more() {
    in_loop(async {
        let mut site = Site::new();
        let requester = site.requester(entities()).await;
        site.request(Call::Forget);
        site.threads.settle().await;
        assert_eq!(site.lead.count(), 2, "the lead ends it");
        assert!(site.can_be_lent());
        site.threads.settle().await;
        // A completion that was on its way meanwhile is for nobody.
        assert_eq!(requester.send(&whole(b"late")), Err(Gone));
        let poll_room = std::future::poll_fn(|_| Poll::Ready(requester.poll_room())).await;
        assert_eq!(poll_room, Poll::Ready(Err(Gone)));
        assert!(site.threads.pools[0].dispatcher.operations.has_no_remote());
    });
}

#[test]
fn a_long_response_waits_for_the_worker_to_read() {
    in_loop(async {
        let mut site = Site::new();
        let requester = site.requester(entities()).await;
        let body: Vec<u8> = (0..3_000_000_u32).map(|at| at as u8).collect();
        let (expected, is_sent) = (body.clone(), Rc::new(Cell::new(false)));
        let sent = is_sent.clone();
        spawn(async move {
            requester.send_whole(ID, HEAD, std::iter::once(&body[..])).await.unwrap();
            sent.set(true);
        });
        // Without a reader the ring is filled, and a few more pieces are on their way.
        for _ in 0..100 {
            yield_now().await;
            site.threads.settle().await;
        }
        assert!(!is_sent.get());
        let unsent =
            site.threads.pools[1].core.members.borrow().roster.all().all(|one| one.has_sent_all());
        assert!(!unsent);
        let held = site.threads.pools[1]
            .core
            .members
            .borrow()
            .roster
            .all()
            .map(|one| one.is_behind())
            .next();
        assert_eq!(held, Some(false));
        let (mut names, mut bytes) = (Vec::new(), Vec::new());
        while names.last() != Some(&"end") {
            yield_now().await;
            site.threads.settle().await;
            let (more, body) = site.read();
            names.extend(more);
            bytes.extend(body);
        }
        assert_eq!((names[0], is_sent.get()), ("head", true));
        assert!(bytes == expected);
    });
}

#[test]
fn a_worker_is_not_read_while_the_lead_has_much_to_begin() {
    in_loop(async {
        let mut site = Site::new();
        let pool = site.threads.pools[1].clone();
        let is_behind = || pool.core.members.borrow().roster.all().any(|worker| worker.is_behind());
        let mut count = 0;
        while !is_behind() {
            count += 1;
            site.request(Call::Task(TaskCall { name: &[b'a'; 60_000], ..TASK_CALL }));
        }
        site.request(TASK);
        assert!((4..7).contains(&count), "{count}");
        site.threads.deliver(0).await;
        assert_eq!(site.lead.count(), count, "the last one is in the ring");
        site.threads.settle().await;
        assert_eq!((site.lead.count(), is_behind()), (count + 1, false));
    });
}

#[test]
fn the_death_of_a_worker_ends_its_operations() {
    in_loop(async {
        let mut site = Site::new();
        let requester = site.requester(TASK).await;
        // More than may be on its way, for nobody reads it.
        while std::future::poll_fn(|_| Poll::Ready(requester.poll_room())).await.is_ready() {
            requester.send(&Completion { id: ID, part: Part::Body(&[0; 30_000]) }).unwrap();
        }
        let (result, waiting) = (Rc::new(RefCell::new(None)), requester.clone());
        let stored = result.clone();
        spawn(async move { *stored.borrow_mut() = Some(waiting.room().await) });
        yield_now().await;
        assert_eq!(*result.borrow(), None);
        let worker = site.worker;
        worker.die(&site.threads.pools[1]);
        site.threads.settle().await;
        yield_now().await;
        assert_eq!(*result.borrow(), Some(Err(Gone)));
        assert_eq!(requester.send(&whole(b"")), Err(Gone));
        assert_eq!(*site.lead.forgotten.borrow(), [requester.worker()]);
        assert_eq!(site.local.forgotten.borrow().len(), 1);
        assert!(site.threads.pools[0].dispatcher.operations.has_no_remote());
    });
}

#[test]
fn without_the_leads_pool_an_operation_fails_at_once() {
    in_loop(async {
        let mut site = Site::new();
        site.threads.end(0);
        site.request(TASK);
        let completion = site.worker.completion(&site.threads.pools[1]).unwrap();
        let Part::Failed { failure, .. } = completion.part else { panic!("{completion:?}") };
        assert_eq!(failure, Failure::Busy);
        let id = site.threads.pools[1].core.members.borrow().roster.all().next().unwrap().id;
        assert!(!site.threads.pools[1].dispatcher.operations.has_any(id));
    });
}

#[test]
fn an_operation_that_panics_on_the_lead_affects_no_other() {
    #[derive(Debug)]
    struct Panics;
    impl Operations for Panics {
        fn begin(&self, _: Requester, _: &Operation<'_>) {
            panic!("as a defect would");
        }
        fn forget(&self, _: WorkerId) {}

        fn has_any(&self, _: WorkerId) -> bool {
            false
        }
    }
    in_loop(async {
        let mut site = Site::new();
        site.threads.pools[0].set_operations(Rc::new(Panics));
        site.request(TASK);
        site.threads.settle().await;
        assert_eq!(site.read().0, ["failed"]);
        site.threads.pools[0].set_operations(site.lead.clone());
        let requester = site.requester(TASK).await;
        requester.send(&whole(b"well")).unwrap();
        site.threads.settle().await;
        assert_eq!(site.read().1, b"well");
    });
}
