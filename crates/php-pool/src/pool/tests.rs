//! Pools whose workers are the test itself, at the other end of real rings.

use super::operations::{Gone, NoOperations};
use super::worker::Worker;
use super::*;
use crate::exchange::End;
use crate::tasks::{self, Tasks};
use outboard_buffer::Memory;
use outboard_buffer::RequestBody;
use outboard_log::Opener;
use outboard_log::{Level, Sink, Target};
use outboard_ring::channel::{WaitCall, WorkerChannel};
use outboard_ring::control::{HostSettings, Isolation, Rlimits, WorkerScript};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::{
    Call, Completion, Failure, FetchCall, FetchOptions, Operation, Part,
};
use outboard_ring::request::{FIELD_COUNT, Field, Fixed, RequestParts, encode};
use outboard_ring::response::{Done, Outcome};
use outboard_ring::task::TaskCall;
use outboard_supervisor::worker::WorkerProcess;
use outboard_supervisor::worker::lifecycle::State;
use std::collections::BTreeMap;

const DEADLINE_MS: u64 = 1_000;

fn settings(concurrency: u32, isolation: Isolation) -> PoolSettings {
    let worker = WorkerScript {
        script: "/w.php".into(),
        concurrency,
        isolation,
        frankenphp: true,
        swoole: false,
        arguments: Vec::new(),
        state_report: None,
    };
    let host = HostSettings {
        app: "site".into(),
        document_root: "/".into(),
        sapi_name: "fpm-fcgi".into(),
        ini_file: None,
        ini_scan_dir: None,
        ini: BTreeMap::new(),
        fixed_ini: BTreeMap::new(),
        env: BTreeMap::new(),
        run_as: None,
        no_new_privileges: true,
        rlimits: Rlimits::default(),
        worker: Some(worker),
    };
    PoolSettings {
        app: "site".into(),
        host_binary: "/bin/false".into(),
        as_user: None,
        host,
        min: Some(1),
        max: Some(8),
        memory_budget_bytes: 1 << 30,
        spare: 0,
        queue_length: 100,
        queue_timeout_ms: 5_000,
        loopback_slots: 0,
        idle_timeout_ms: 5_000,
        recycle_requests: None,
        recycle_jitter_percent: 0,
        recycle_memory_bytes: None,
        deadline_ms: DEADLINE_MS,
        log_rate: allowance::LogRate { lines: 1_000, bytes: 1 << 20 },
        slow_ms: None,
        start_timeout_ms: 5_000,
    }
}

fn pool(concurrency: u32) -> Rc<Pool> {
    pool_of(settings(concurrency, Isolation::Reset))
}

fn pool_of(settings: PoolSettings) -> Rc<Pool> {
    let sink = Rc::new(Sink::open(Target::Off, Opener::default()).unwrap());
    let log = Rc::new(ErrorLog::new(sink, Level::Error));
    let pool = Pool::idle(settings, log.clone(), log);
    pool.phase.set(Phase::Serving);
    pool
}

/// The worker's end.
struct Fake {
    number: u64,
    channel: WorkerChannel,
    frame: Vec<u8>,
}

impl Fake {
    /// Joins the pool as its worker `number`, ready.
    fn join(pool: &Rc<Pool>, number: u64) -> Fake {
        let (process, memory) =
            WorkerProcess::prepare(number, Capacities::DEFAULT, now_ms()).unwrap();
        let concurrency = pool.settings.concurrency();
        pool.members.borrow_mut().add(|slot| {
            let id = WorkerId { pool: pool.id, slot, number };
            let allowance = pool.allowance.clone();
            Worker::new(id, process, None, concurrency, true, allowance, None)
        });
        let channel = WorkerChannel::map(&memory).unwrap();
        let mut fake = Fake { number, channel, frame: Vec::new() };
        fake.says(FrameKind::Ready, Tag::default(), &[]);
        pool.look(&mut Budget::default());
        fake
    }

    fn says(&mut self, kind: FrameKind, tag: Tag, payload: &[u8]) {
        assert!(self.channel.push(kind, tag, &[payload]).unwrap(), "the ring is full");
        let _ = self.channel.publish();
    }

    /// The next frame from the gateway.
    fn hears(&mut self) -> Option<(FrameKind, Tag)> {
        let header = self.channel.receive(&mut self.frame).unwrap()?;
        let _ = self.channel.release();
        Some((header.kind, header.tag))
    }

    /// Takes and starts the next request.
    fn starts(&mut self) -> Tag {
        let (kind, tag) = self.hears().expect("a request");
        assert_eq!(kind, FrameKind::Request);
        assert!(self.channel.start(tag), "it was withdrawn");
        tag
    }

    fn finishes(&mut self, tag: Tag, leaving: bool) {
        let done = Done { outcome: Outcome::Finished, leaving, peak_memory_bytes: 7 };
        self.says(FrameKind::Done, tag, &done.encode());
    }

    fn answers(&mut self, tag: Tag, body: &[u8]) {
        self.says(FrameKind::Head, tag, b"head");
        self.says(FrameKind::Body, tag, body);
        self.finishes(tag, false);
    }
}

fn frame(target: &str) -> Vec<u8> {
    let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
    fields[Field::Method as usize] = b"GET";
    fields[Field::Uri as usize] = target.as_bytes();
    let none = std::iter::empty;
    let parts = RequestParts { fixed: Fixed::default(), fields, headers: none(), params: none() };
    let mut frame = Vec::new();
    encode(parts, &mut frame);
    frame
}

fn exchange_with(body: &[u8], buffer_bytes: usize) -> Rc<Exchange> {
    let body = RequestBody::whole(body.to_vec());
    Rc::new(Exchange::new(frame("/a/b"), body, 1, now_ms(), buffer_bytes))
}

fn submit(pool: &Pool) -> Rc<Exchange> {
    submit_with(pool, b"", 1 << 20)
}

fn submit_with(pool: &Pool, body: &[u8], buffer_bytes: usize) -> Rc<Exchange> {
    let exchange = exchange_with(body, buffer_bytes);
    pool.submit(exchange.clone(), None).unwrap();
    exchange
}

fn body_of(exchange: &Exchange) -> (Vec<u8>, Option<End>) {
    exchange.take().map_or_else(Default::default, |arrived| (arrived.body, arrived.end))
}

fn end_of(exchange: &Exchange) -> Option<End> {
    body_of(exchange).1
}

fn state_of(pool: &Pool, fake: &Fake) -> Option<State> {
    pool.members.borrow().all().find(|w| w.process.number == fake.number).map(Worker::state)
}

fn in_loop(test: impl Future<Output = ()> + 'static) {
    outboard_reactor::run(test).unwrap();
}

const CRASHED: Option<End> = Some(End::Failed(Reason::WorkerCrashed));
const COMPLETE: Option<End> = Some(End::Complete);

#[test]
fn each_request_goes_to_the_worker_with_fewest() {
    in_loop(async {
        let pool = pool(3);
        let (mut one, mut two) = (Fake::join(&pool, 1), Fake::join(&pool, 2));
        let all: Vec<_> = (0..4).map(|_| submit(&pool)).collect();
        let first = [one.starts(), one.starts()];
        let second = [two.starts(), two.starts()];
        assert!(one.hears().is_none() && two.hears().is_none());
        for tag in first {
            one.answers(tag, b"one");
        }
        pool.look(&mut Budget::default());
        let next = [submit(&pool), submit(&pool)];
        one.starts();
        one.starts();
        for tag in second {
            two.answers(tag, b"two");
        }
        pool.look(&mut Budget::default());
        assert!(all.iter().all(|exchange| end_of(exchange) == COMPLETE));
        assert!(next.iter().all(|exchange| !exchange.has_ended()));
    });
}

#[test]
fn interleaved_frames_reach_the_request_that_they_are_tagged_with() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = Fake::join(&pool, 1);
        let (a, b) = (submit(&pool), submit(&pool));
        let (first, second) = (worker.starts(), worker.starts());
        assert_ne!(first.slot, second.slot);
        for (tag, piece) in [(second, b"2a"), (first, b"1a"), (second, b"2b"), (first, b"1b")] {
            worker.says(FrameKind::Body, tag, piece);
        }
        worker.finishes(second, false);
        let late = Tag { slot: first.slot, generation: first.generation + 7 };
        worker.says(FrameKind::Body, late, b"late");
        pool.look(&mut Budget::default());
        assert_eq!(body_of(&b), (b"2a2b".to_vec(), COMPLETE));
        assert_eq!(body_of(&a), (b"1a1b".to_vec(), None));
        worker.finishes(first, false);
        pool.look(&mut Budget::default());
        assert_eq!(end_of(&a), COMPLETE);
        assert_eq!(state_of(&pool, &worker), Some(State::Idle));
    });
}

#[test]
fn what_no_worker_has_room_for_waits_for_the_first_that_is_done() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = Fake::join(&pool, 1);
        let _held = [submit(&pool), submit(&pool)];
        let waiting = submit(&pool);
        let (first, second) = (worker.starts(), worker.starts());
        assert!(worker.hears().is_none());
        assert_eq!(pool.status().queue_length, 1);
        worker.finishes(second, false);
        pool.look(&mut Budget::default());
        let third = worker.starts();
        assert_eq!(third.slot, second.slot, "a lease is used again");
        assert_ne!(third.generation, second.generation);
        worker.answers(third, b"x");
        worker.finishes(first, false);
        pool.look(&mut Budget::default());
        assert_eq!(end_of(&waiting), COMPLETE);
    });
}

#[test]
fn a_queue_that_is_full_refuses() {
    in_loop(async {
        let pool = pool_of(PoolSettings { queue_length: 1, ..settings(1, Isolation::Reset) });
        let _one = Fake::join(&pool, 1);
        let _taken = [submit(&pool), submit(&pool)];
        let refused = pool.submit(exchange_with(b"", 1), None);
        assert_eq!(refused, Err(Reason::QueueFull));
        let mut long = exchange_with(b"", 1);
        Rc::get_mut(&mut long).unwrap().frame = vec![0; LARGEST_FRAME_BYTES + 1];
        assert_eq!(pool.submit(long, None), Err(Reason::HeadersTooLarge));
    });
}

#[test]
fn a_death_costs_what_was_started_and_the_rest_goes_to_others() {
    in_loop(async {
        let pool = pool(3);
        let mut victim = Fake::join(&pool, 1);
        let started = [submit(&pool), submit(&pool)];
        let unstarted = submit_with(&pool, b"the body", 1 << 20);
        let finished = victim.starts();
        victim.starts();
        victim.answers(finished, b"in time");
        pool.reap(1, None, "was ended by signal 9");
        assert_eq!(body_of(&started[0]), (b"in time".to_vec(), COMPLETE));
        assert_eq!(end_of(&started[1]), CRASHED);
        assert!(!unstarted.has_ended());
        let mut heir = Fake::join(&pool, 2);
        let tag = heir.starts();
        assert_eq!(heir.hears(), Some((FrameKind::RequestBody, tag)));
        assert_eq!(heir.frame, b"the body", "from its beginning, though it had been sent before");
        heir.answers(tag, b"x");
        pool.look(&mut Budget::default());
        assert_eq!(end_of(&unstarted), COMPLETE);
        assert_eq!(pool.status().crashes, 1);
    });
}

#[test]
fn a_worker_that_leaves_finishes_what_it_has_and_is_given_no_more() {
    in_loop(async {
        let pool = pool(3);
        let mut leaver = Fake::join(&pool, 1);
        let (a, b, unstarted) = (submit(&pool), submit(&pool), submit(&pool));
        let (first, second) = (leaver.starts(), leaver.starts());
        leaver.finishes(first, true);
        pool.look(&mut Budget::default());
        assert_eq!(end_of(&a), COMPLETE);
        assert_eq!(state_of(&pool, &leaver), Some(State::Draining));
        let mut heir = Fake::join(&pool, 2);
        let tag = heir.starts();
        heir.answers(tag, b"x");
        leaver.answers(second, b"y");
        pool.look(&mut Budget::default());
        assert_eq!((end_of(&unstarted), end_of(&b)), (COMPLETE, COMPLETE));
        submit(&pool);
        heir.starts();
        pool.reap(1, Some(0), "left with code 0");
        assert_eq!(pool.status().crashes, 0);
    });
}

#[test]
fn a_request_past_its_deadline_is_cancelled_and_its_neighbours_go_on() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = Fake::join(&pool, 1);
        let (late, neighbour) = (submit(&pool), submit(&pool));
        let (first, second) = (worker.starts(), worker.starts());
        let began_ms = now_ms();
        worker.finishes(second, false);
        pool.look(&mut Budget::default());
        assert_eq!(end_of(&neighbour), COMPLETE);
        for after_ms in [0, 60, 270] {
            pool.enforce_deadlines(began_ms + DEADLINE_MS + after_ms);
        }
        assert_eq!(end_of(&late), Some(End::Failed(Reason::Deadline)));
        assert_eq!(worker.hears(), Some((FrameKind::Cancel, first)));
        worker.finishes(first, false);
        pool.look(&mut Budget::default());
        pool.enforce_deadlines(began_ms + DEADLINE_MS + 1_000);
        assert_eq!(state_of(&pool, &worker), Some(State::Idle));
        assert_eq!(pool.status().deadlines, 1);
    });
}

#[test]
fn a_worker_that_does_not_end_a_cancelled_request_is_killed() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = Fake::join(&pool, 1);
        let late = submit(&pool);
        worker.starts();
        let began_ms = now_ms();
        for after_ms in [0, 60, 270, 500] {
            pool.enforce_deadlines(began_ms + DEADLINE_MS + after_ms);
        }
        assert_eq!(state_of(&pool, &worker), Some(State::Busy));
        pool.enforce_deadlines(began_ms + DEADLINE_MS + 530);
        assert_eq!(state_of(&pool, &worker), Some(State::Killing));
        assert_eq!(end_of(&late), Some(End::Failed(Reason::Deadline)));
        assert!(pool.submit(exchange_with(b"", 1), None).is_ok(), "it waits for a successor");
        assert_eq!(pool.status().queue_length, 1);
    });
}

#[test]
fn a_request_past_its_deadline_that_was_not_started_costs_the_worker_nothing() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = Fake::join(&pool, 1);
        let (_busy, late) = (submit(&pool), submit(&pool));
        let first = worker.starts();
        worker.finishes(first, false);
        let began_ms = now_ms();
        pool.look(&mut Budget::default());
        pool.enforce_deadlines(began_ms + DEADLINE_MS + 1);
        assert_eq!(end_of(&late), Some(End::Failed(Reason::Deadline)));
        assert_eq!(state_of(&pool, &worker), Some(State::Idle));
        let (_, tag) = worker.hears().unwrap();
        assert!(!worker.channel.start(tag));
    });
}

#[test]
fn a_request_that_its_client_gives_up_is_taken_back_or_aborted() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = Fake::join(&pool, 1);
        let (started, unstarted) = (submit(&pool), submit(&pool));
        let waiting = submit(&pool);
        let tag = worker.starts();
        pool.abandon(&started);
        assert!(worker.channel.is_aborted(tag));
        pool.abandon(&unstarted);
        let (_, withdrawn) = worker.hears().unwrap();
        assert!(!worker.channel.start(withdrawn));
        let next = worker.starts();
        worker.answers(next, b"x");
        pool.look(&mut Budget::default());
        assert_eq!(end_of(&waiting), COMPLETE);
        assert_eq!(pool.status().in_flight, 1, "the aborted one is the worker's to end");
    });
}

#[test]
fn a_client_that_does_not_read_does_not_hold_up_the_others_of_its_worker() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = Fake::join(&pool, 1);
        let slow = submit_with(&pool, b"", 1_000);
        let quick = submit(&pool);
        let (first, second) = (worker.starts(), worker.starts());
        for _ in 0..20 {
            worker.says(FrameKind::Body, first, &[b'x'; 1_000]);
        }
        worker.answers(second, b"quick");
        pool.look(&mut Budget::default());
        assert_eq!(body_of(&quick), (b"quick".to_vec(), COMPLETE));
        assert_eq!(body_of(&slow).0.len(), 20_000);
    });
}

#[test]
fn an_answer_that_nobody_takes_stays_in_the_ring_of_a_worker_with_one_request() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = Fake::join(&pool, 1);
        let slow = submit_with(&pool, b"", 1_000);
        let tag = worker.starts();
        for _ in 0..20 {
            worker.says(FrameKind::Body, tag, &[b'x'; 600]);
        }
        pool.look(&mut Budget::default());
        assert_eq!(body_of(&slow).0.len(), 1_200);
        pool.look(&mut Budget::default());
        assert_eq!(body_of(&slow).0.len(), 1_200);
    });
}

#[test]
fn quick_requests_lie_ahead_of_a_worker_with_one_at_a_time() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = Fake::join(&pool, 1);
        for _ in 0..3 {
            submit(&pool);
            let tag = worker.starts();
            worker.answers(tag, b"x");
            pool.look(&mut Budget::default());
        }
        let all = [submit(&pool), submit(&pool), submit(&pool)];
        assert_eq!(pool.status().queue_length, 0);
        assert_eq!(pool.status().in_flight, 1);
        let first = worker.starts();
        let second = worker.starts();
        worker.answers(first, b"1");
        worker.answers(second, b"2");
        pool.look(&mut Budget::default());
        pool.reap(1, None, "was ended by signal 9");
        assert_eq!(body_of(&all[1]), (b"2".to_vec(), COMPLETE));
        assert!(!all[2].has_ended(), "it was not started, so it waits for another");
    });
}

#[test]
fn completions_reach_the_worker_that_asked_in_order_and_never_its_successor() {
    #[derive(Debug, Default)]
    struct Kept(RefCell<Vec<Requester>>);
    impl Operations for Kept {
        fn begin(&self, requester: Requester, payload: &[u8]) {
            assert!(matches!(Operation::decode(payload).unwrap().call, Call::Forget));
            self.0.borrow_mut().push(requester);
        }
        fn forget(&self, worker: WorkerId) {
            assert_eq!(self.0.borrow()[0].worker(), worker);
        }
    }
    in_loop(async {
        let (pool, kept) = (pool(2), Rc::new(Kept::default()));
        pool.set_operations(kept.clone());
        let mut worker = Fake::join(&pool, 1);
        let id = Tag { slot: 3, generation: 4 };
        let mut operation = Vec::new();
        Operation { id, call: Call::Forget }.encode(&mut operation);
        worker.says(FrameKind::Operation, Tag::default(), &operation);
        pool.look(&mut Budget::default());
        let requester = kept.0.borrow()[0].clone();
        // More than the ring holds: what does not fit waits.
        let piece = |number: u8| [number; 30_000];
        for number in 0..8 {
            let part = Part::Body(&piece(number));
            requester.send(&Completion { id, part }).unwrap();
        }
        for number in 0..8 {
            pool.look(&mut Budget::default());
            assert_eq!(worker.hears().map(|(kind, _)| kind), Some(FrameKind::Completion));
            let part = Part::Body(&piece(number));
            assert_eq!(Completion::decode(&worker.frame).unwrap(), Completion { id, part });
        }
        requester.room().await.unwrap();
        pool.reap(1, None, "was ended by signal 9");
        let mut successor = Fake::join(&pool, 2);
        assert_eq!(requester.send(&Completion { id, part: Part::End }), Err(Gone));
        assert!(successor.hears().is_none());
    });
}

#[test]
fn a_fetch_that_nobody_carries_out_fails_at_once() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = Fake::join(&pool, 1);
        submit(&pool);
        let request = worker.starts();
        let id = Tag { slot: 0, generation: 1 };
        let options = FetchOptions { verify: true, decompress: true, http2: true };
        let call = Call::Fetch(FetchCall {
            url: b"http://127.0.0.1/",
            method: b"GET",
            headers: b"",
            body_bytes: 0,
            connect_timeout_ms: 1,
            timeout_ms: 1,
            max_body_bytes: 1,
            max_redirects: 0,
            retries: 0,
            options,
        });
        let mut operation = Vec::new();
        Operation { id, call }.encode(&mut operation);
        worker.says(FrameKind::Operation, request, &operation);
        pool.look(&mut Budget::default());
        assert_eq!(worker.hears(), Some((FrameKind::Completion, request)));
        let completion = Completion::decode(&worker.frame).unwrap();
        assert!(matches!(completion.part, Part::Failed { .. }), "{completion:?}");
    });
}

#[test]
fn a_fork_that_is_used_is_neither_a_crash_nor_recycled() {
    in_loop(async {
        let pool = pool_of(settings(1, Isolation::Fork));
        let (mut one, mut two) = (Fake::join(&pool, 1), Fake::join(&pool, 2));
        let (a, b) = (submit(&pool), submit(&pool));
        let tag = two.starts();
        two.answers(tag, b"x");
        let tag = one.starts();
        one.says(FrameKind::Body, tag, b"y");
        one.finishes(tag, true);
        pool.look(&mut Budget::default());
        assert_eq!((end_of(&a), end_of(&b)), (COMPLETE, COMPLETE));
        assert_eq!(state_of(&pool, &one), Some(State::Draining));
        pool.reap(1, Some(0), "left with code 0");
        let status = pool.status();
        assert_eq!((status.crashes, status.recycled, status.workers.len()), (0, 0, 1));
        assert_eq!((status.mode.as_str(), status.isolation.as_deref()), ("worker", Some("fork")));
    });
}

#[test]
fn a_worker_that_dies_while_it_starts_is_told_with_what_it_said() {
    in_loop(async {
        let pool = pool(1);
        let (process, memory) = WorkerProcess::prepare(1, Capacities::DEFAULT, now_ms()).unwrap();
        pool.members.borrow_mut().add(|slot| {
            let id = WorkerId { pool: pool.id, slot, number: 1 };
            Worker::new(id, process, None, 1, true, pool.allowance.clone(), None)
        });
        let channel = WorkerChannel::map(&memory).unwrap();
        let mut fake = Fake { number: 1, channel, frame: Vec::new() };
        fake.says(FrameKind::Log, Tag::default(), b"\x03PHP Fatal error: no such class");
        pool.reap(1, Some(255), "left with code 255");
        let error = pool.ready().await.unwrap_err();
        assert!(error.message.contains("left with code 255 while starting"), "{error}");
        assert!(error.message.contains("no such class"), "{error}");
    });
}

#[test]
fn a_worker_that_is_due_stays_until_its_successor_is_ready() {
    in_loop(async {
        let recycle_requests = Some(2);
        let pool = pool_of(PoolSettings { recycle_requests, ..settings(1, Isolation::Reset) });
        let mut old = Fake::join(&pool, 1);
        for _ in 0..3 {
            submit(&pool);
            let tag = old.starts();
            old.answers(tag, b"x");
            pool.look(&mut Budget::default());
        }
        assert_eq!(state_of(&pool, &old), Some(State::Idle));
        submit(&pool);
        let tag = old.starts();
        pool.replacements.borrow_mut().push(Replacement { old: 1, new: Some(2) });
        let _successor = Fake::join(&pool, 2);
        old.answers(tag, b"x");
        pool.look(&mut Budget::default());
        assert_eq!(state_of(&pool, &old), Some(State::Draining));
        assert_eq!(old.hears().map(|(kind, _)| kind), Some(FrameKind::Stop));
        assert_eq!((pool.successors(), pool.status().recycled), (0, 1));
    });
}

/// An operation that makes the gateway panic costs the worker that asked for it, and nobody else.
#[test]
fn an_operation_that_makes_us_panic_costs_its_worker_and_no_other() {
    #[derive(Debug)]
    struct Panics;
    impl Operations for Panics {
        fn begin(&self, _: Requester, _: &[u8]) {
            panic!("as a defect would");
        }
        fn forget(&self, _: WorkerId) {}
    }
    in_loop(async {
        let pool = pool(1);
        pool.set_operations(Rc::new(Panics));
        let (mut asks, mut other) = (Fake::join(&pool, 1), Fake::join(&pool, 2));
        let exchanges = [submit(&pool), submit(&pool)];
        let (its_own, of_the_other) = (asks.starts(), other.starts());
        asks.says(FrameKind::Operation, its_own, b"anything");
        pool.look(&mut Budget::default());
        other.answers(of_the_other, b"well");
        pool.look(&mut Budget::default());
        assert_eq!(state_of(&pool, &asks), Some(State::Killing));
        assert_eq!(state_of(&pool, &other), Some(State::Idle));
        pool.reap(1, None, "was ended by signal 9");
        let ends = exchanges.map(|exchange| end_of(&exchange));
        assert!(ends.contains(&COMPLETE), "{ends:?}");
        assert!(ends.iter().any(|end| matches!(end, Some(End::Failed(_)))), "{ends:?}");
    });
}

/// The host checks it as well, but a worker need not be the host.
#[test]
fn a_task_with_a_name_of_any_length_is_refused_and_costs_nobody() {
    in_loop(async {
        let pool = pool(1);
        let config = outboard_config::Tasks {
            workers: 1,
            concurrency: 1,
            script: "/t.php".into(),
            queue_length: 1,
            max_queue_bytes: 1 << 20,
            max_retries: 0,
            backoff_ms: 1,
            timeout_ms: 1,
            kv_namespace: None,
            cron: Vec::new(),
        };
        let memory = Memory::new(1 << 20).of_app("site").operations;
        let task_workers = (pool_of(settings(1, Isolation::Reset)), memory);
        let tasks = Tasks::start("site", config, task_workers, None, pool.error_log.clone());
        pool.set_operations(tasks::before(Rc::new(NoOperations), Some(tasks)));
        let mut worker = Fake::join(&pool, 1);
        for (number, length) in [256, 70_000].into_iter().enumerate() {
            let id = Tag { slot: 0, generation: number as u32 };
            let name = vec![b'n'; length];
            let call = TaskCall {
                name: &name,
                data_bytes: 0,
                delay_ms: 0,
                is_awaited: false,
                retries: None,
            };
            let mut operation = Vec::new();
            Operation { id, call: Call::Task(call) }.encode(&mut operation);
            worker.says(FrameKind::Operation, Tag::default(), &operation);
            pool.look(&mut Budget::default());
            pool.look(&mut Budget::default());
            assert_eq!(worker.hears().map(|(kind, _)| kind), Some(FrameKind::Completion));
            let Completion { part: Part::Failed { failure, message }, .. } =
                Completion::decode(&worker.frame).unwrap()
            else {
                panic!("{length} bytes were taken");
            };
            assert_eq!(failure, Failure::BadCall, "{message}");
        }
        assert_eq!(state_of(&pool, &worker), Some(State::Idle));
    });
}

#[test]
fn waits_are_those_of_all_workers_that_are_or_were_there_whatever_these_count() {
    in_loop(async {
        let pool = pool(1);
        let waits = |call: WaitCall| {
            let all = pool.status().waits;
            let of = all.into_iter().find(|waits| waits.call == call.name());
            of.map(|waits| (waits.suspended, waits.blocked, waits.blocked_ms))
        };
        let (one, two) = (Fake::join(&pool, 1), Fake::join(&pool, 2));
        assert_eq!(waits(WaitCall::Sleep), None, "nobody has waited");
        one.channel.count_suspended(WaitCall::Sleep);
        one.channel.count_blocked(WaitCall::Sleep, 2_500);
        two.channel.count_blocked(WaitCall::Sleep, 2_500);
        two.channel.count_blocked(WaitCall::Lock, 7_000);
        assert_eq!(waits(WaitCall::Sleep), Some((1, 2, 5)));
        assert_eq!(waits(WaitCall::Lock), Some((0, 1, 7)));
        pool.reap(2, None, "was ended by signal 9");
        assert_eq!(waits(WaitCall::Sleep), Some((1, 2, 5)), "they are not forgotten");
        // The memory is a worker's own, and so are the numbers in it.
        one.channel.count_blocked(WaitCall::Sleep, u64::MAX - 2_500);
        assert_eq!(waits(WaitCall::Sleep), Some((1, 3, u64::MAX / 1000)));
        pool.reap(1, None, "was ended by signal 9");
        assert_eq!(waits(WaitCall::Sleep), Some((1, 3, u64::MAX / 1000)));
    });
}
