//! Operations of workers: order, back-pressure, and the end of their workers.

use super::*;
use crate::pool::operations::{Gone, PIECE_BYTES};
use crate::rings::PolledRings;
use outboard_buffer::Memory;
use outboard_ring::operation::{
    Call, Completion, Failure, FetchCall, FetchOptions, FetchedHead, Operation, Part,
};
use outboard_ring::spsc::Sleep;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

/// The payload of an operation.
pub(super) fn forget() -> Vec<u8> {
    let mut payload = Vec::new();
    let id = Tag { slot: 9, generation: 9 };
    Operation { id, span: 0, call: Call::Forget }.encode(&mut payload);
    payload
}

#[test]
fn completions_reach_their_requester_in_order_and_no_successor() {
    #[derive(Debug, Default)]
    struct Stored(RefCell<Vec<Requester>>);
    impl Operations for Stored {
        fn begin(&self, requester: Requester, operation: &Operation<'_>) {
            assert!(matches!(operation.call, Call::Forget));
            self.0.borrow_mut().push(requester);
        }
        fn forget(&self, worker: WorkerId) {
            assert_eq!(self.0.borrow()[0].worker(), worker);
        }

        fn has_any(&self, _: WorkerId) -> bool {
            false
        }
    }
    in_loop(async {
        let (pool, stored) = (pool(2), Rc::new(Stored::default()));
        pool.set_operations(stored.clone());
        let mut worker = StandIn::join(&pool, 1);
        let id = Tag { slot: 3, generation: 4 };
        let mut operation = Vec::new();
        Operation { id, span: 0, call: Call::Forget }.encode(&mut operation);
        worker.send(FrameKind::Operation, Tag::default(), &operation);
        poll(&pool);
        let requester = stored.0.borrow()[0].clone();
        // More than the ring holds: what does not fit waits.
        let piece = |number: u8| [number; 30_000];
        for number in 0..8 {
            let part = Part::Body(&piece(number));
            requester.send(&Completion { id, part }).unwrap();
        }
        for number in 0..8 {
            poll(&pool);
            assert_eq!(worker.receive().map(|(kind, _)| kind), Some(FrameKind::Completion));
            let part = Part::Body(&piece(number));
            assert_eq!(Completion::decode(&worker.frame).unwrap(), Completion { id, part });
        }
        requester.room().await.unwrap();
        reap(&pool, 1);
        let mut successor = StandIn::join(&pool, 2);
        assert_eq!(requester.send(&Completion { id, part: Part::End }), Err(Gone));
        assert!(successor.receive().is_none());
    });
}

/// The doorbell by which the pool wakes its first worker, without the rings until now.
fn rings_of(pool: &Pool) -> File {
    let members = pool.core.members.borrow();
    let doorbell = &members.roster.get(0).unwrap().process.doorbell;
    let rings = File::from(doorbell.as_fd().try_clone_to_owned().unwrap());
    count_of(&rings);
    rings
}

/// How often it has rung since the last call (eventfd(2)).
fn count_of(mut rings: &File) -> u64 {
    let mut count = [0; 8];
    rings.read_exact(&mut count).map_or(0, |()| u64::from_ne_bytes(count))
}

#[test]
fn a_worker_is_woken_before_the_loop_sleeps() {
    in_loop(async {
        let (pool, mut worker, _, requester) = with_requester();
        let rings = rings_of(&pool);
        assert_eq!(worker.channel.prepare_sleep().unwrap(), Sleep::MayBlock);
        poll(&pool);
        // As an operation of another pool may, which is polled later.
        requester.send(&Completion { id: ID, part: Part::End }).unwrap();
        pool.prepare_sleep();
        assert_eq!(count_of(&rings), 1);
    });
}

#[test]
fn a_fetch_without_operations_fails_at_once() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        submit(&pool);
        let request = worker.start_next();
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
        Operation { id, span: 0, call }.encode(&mut operation);
        worker.send(FrameKind::Operation, request, &operation);
        assert_eq!(worker.channel.prepare_sleep().unwrap(), Sleep::MayBlock);
        let rings = rings_of(&pool);
        // The loop may sleep after it has looked once: the worker has to be woken by then.
        let rung_before = count_of(&rings);
        poll(&pool);
        assert_eq!((rung_before, count_of(&rings)), (0, 1));
        assert_eq!(worker.receive(), Some((FrameKind::Completion, request)));
        let completion = Completion::decode(&worker.frame).unwrap();
        assert!(matches!(completion.part, Part::Failed { .. }), "{completion:?}");
    });
}

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

#[test]
fn a_worker_that_is_killed_while_idle_gets_no_request() {
    in_loop(async {
        let pool = pool(1);
        pool.set_operations(Rc::new(Panics));
        let mut worker = StandIn::join(&pool, 1);
        worker.request_with(&pool, &forget());
        assert_eq!(worker.state(&pool), Some(State::Killing));
        let exchange = submit(&pool);
        assert_eq!(pool.status().queue_length, 1);
        let mut other = StandIn::join(&pool, 2);
        other.process_next(&pool);
        assert_eq!((worker.receive(), end_of(&exchange)), (None, COMPLETE));
    });
}

#[test]
fn an_operation_that_panics_kills_only_its_worker() {
    in_loop(async {
        let pool = pool(1);
        pool.set_operations(Rc::new(Panics));
        let (mut worker, mut other) = (StandIn::join(&pool, 1), StandIn::join(&pool, 2));
        let exchanges = [submit(&pool), submit(&pool)];
        let (its_own, of_the_other) = (worker.start_next(), other.start_next());
        worker.send(FrameKind::Operation, its_own, &forget());
        poll(&pool);
        other.respond(of_the_other, b"well");
        poll(&pool);
        assert_eq!(worker.state(&pool), Some(State::Killing));
        assert_eq!(other.state(&pool), Some(State::Idle));
        reap(&pool, 1);
        let ends = exchanges.map(|exchange| end_of(&exchange));
        assert!(ends.contains(&COMPLETE), "{ends:?}");
        assert!(ends.iter().any(|end| matches!(end, Some(End::Failed(_)))), "{ends:?}");
    });
}

/// Stores requesters, and the order of the calls.
#[derive(Debug, Default)]
struct Recorder {
    requesters: RefCell<Vec<Requester>>,
    calls: RefCell<Vec<&'static str>>,
}

impl Operations for Recorder {
    fn begin(&self, requester: Requester, _: &Operation<'_>) {
        self.requesters.borrow_mut().push(requester);
        self.calls.borrow_mut().push("begin");
    }

    fn forget(&self, _: WorkerId) {
        self.calls.borrow_mut().push("forget");
    }

    fn has_any(&self, _: WorkerId) -> bool {
        false
    }
}

/// A pool, a worker, and the requester of an operation of this worker.
fn with_requester() -> (Rc<Pool>, StandIn, Rc<Recorder>, Requester) {
    let (pool, recorder) = (pool(2), Rc::new(Recorder::default()));
    pool.set_memory(Memory::new(1 << 30).of_app("site").operations);
    pool.set_operations(recorder.clone());
    let mut worker = StandIn::join(&pool, 1);
    worker.send(FrameKind::Operation, Tag::default(), &forget());
    poll(&pool);
    let requester = recorder.requesters.borrow()[0].clone();
    (pool, worker, recorder, requester)
}

const ID: Tag = Tag { slot: 3, generation: 4 };

#[test]
fn operations_are_begun_before_their_worker_is_forgotten() {
    in_loop(async {
        let (pool, mut worker, recorder, _) = with_requester();
        worker.send(FrameKind::Operation, Tag::default(), &forget());
        reap(&pool, 1);
        assert_eq!(*recorder.calls.borrow(), ["begin"]);
        poll(&pool);
        assert_eq!(*recorder.calls.borrow(), ["begin", "begin", "forget"]);
    });
}

#[test]
fn a_worker_that_does_not_read_completions_cannot_request_more() {
    in_loop(async {
        let (pool, mut worker, recorder, requester) = with_requester();
        let piece = [b'x'; 30_000];
        while requester.memory().held_bytes() <= 1 << 20 {
            requester.send(&Completion { id: ID, part: Part::Body(&piece) }).unwrap();
        }
        worker.send(FrameKind::Operation, Tag::default(), &forget());
        poll(&pool);
        assert_eq!(recorder.calls.borrow().len(), 1, "its ring is not read");
        assert_eq!(pool.prepare_sleep(), u64::MAX, "nor does it keep the gateway awake");
        pool.cancel_sleep();
        while worker.receive().is_some() {
            poll(&pool);
        }
        poll(&pool);
        assert_eq!(recorder.calls.borrow().len(), 2);
        assert_eq!(requester.memory().held_bytes(), 0);
    });
}

#[test]
fn a_waiting_operation_is_woken_by_room_and_by_a_death() {
    in_loop(async {
        for is_killed in [false, true] {
            let (pool, mut worker, _, requester) = with_requester();
            let piece = [b'x'; 30_000];
            while requester.memory().held_bytes() == 0 {
                requester.send(&Completion { id: ID, part: Part::Body(&piece) }).unwrap();
            }
            let result = Rc::new(RefCell::new(None));
            let (stored, waiting) = (result.clone(), requester.clone());
            outboard_reactor::spawn(
                async move { *stored.borrow_mut() = Some(waiting.room().await) },
            );
            outboard_reactor::yield_now().await;
            assert_eq!(*result.borrow(), None);
            if is_killed {
                reap(&pool, 1);
            } else {
                while worker.receive().is_some() {
                    poll(&pool);
                }
            }
            outboard_reactor::yield_now().await;
            outboard_reactor::yield_now().await;
            let expected = if is_killed { Err(Gone) } else { Ok(()) };
            assert_eq!(*result.borrow(), Some(expected));
        }
    });
}

#[test]
fn a_long_response_is_sent_in_pieces() {
    in_loop(async {
        let (pool, mut worker, _, requester) = with_requester();
        let head = FetchedHead { status: 200, http_version: 1, url: b"", headers: b"" };
        let done = Rc::new(Cell::new(false));
        let is_done = done.clone();
        outboard_reactor::spawn(async move {
            let parts = [vec![b'a'; 200_000], vec![b'b'; 100_000]];
            requester.send_whole(ID, head, parts.iter().map(|part| &part[..])).await.unwrap();
            is_done.set(true);
        });
        let (mut body, mut has_ended) = (Vec::new(), false);
        while !has_ended {
            outboard_reactor::yield_now().await;
            poll(&pool);
            while worker.receive().is_some() {
                match Completion::decode(&worker.frame).unwrap().part {
                    Part::Body(piece) => {
                        assert!(piece.len() <= PIECE_BYTES);
                        body.extend_from_slice(piece);
                    }
                    Part::Head(_) => assert!(body.is_empty()),
                    Part::End => has_ended = true,
                    part => panic!("{part:?}"),
                }
            }
        }
        assert_eq!(body, [vec![b'a'; 200_000], vec![b'b'; 100_000]].concat());
        assert!(done.get());
    });
}

#[test]
fn a_short_response_is_one_completion_and_a_long_head_is_a_failure() {
    in_loop(async {
        let (_pool, mut worker, _, requester) = with_requester();
        let head = FetchedHead { status: 200, http_version: 1, url: b"", headers: b"" };
        requester.send_whole(ID, head, [&b"ab"[..], b"c"].into_iter()).await.unwrap();
        assert!(worker.receive().is_some());
        let part = Part::Whole(head, b"abc");
        assert_eq!(Completion::decode(&worker.frame).unwrap(), Completion { id: ID, part });
        let headers = vec![b'x'; 100_000];
        let head = FetchedHead { headers: &headers, ..head };
        requester.send(&Completion { id: ID, part: Part::Head(head) }).unwrap();
        assert!(worker.receive().is_some());
        let Completion { part: Part::Failed { failure, .. }, .. } =
            Completion::decode(&worker.frame).unwrap()
        else {
            panic!("a head of 100 kB was sent");
        };
        assert_eq!(failure, Failure::TooLarge);
    });
}

#[test]
fn a_requester_survives_its_pool() {
    in_loop(async {
        let (pool, worker, _, requester) = with_requester();
        drop((pool, worker));
        assert_eq!(requester.send(&Completion { id: ID, part: Part::End }), Err(Gone));
        assert_eq!(requester.room().await, Err(Gone));
    });
}
