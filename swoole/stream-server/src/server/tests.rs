//! What workers receive and acknowledge, and what becomes of it when they die. The workers are the tests.

use super::*;
use crate::seats::{Gone, WorkerLink};
use outboard_log::{Level, Opener, Sink, Target};
use outboard_reactor::{run, yield_now};
use outboard_ring::stream::{StreamCall, StreamEvent, Verb};
use std::task::Poll;

/// A worker, and what it has received.
#[derive(Debug)]
struct Worker {
    key: (u64, u64),
    generation: u32,
    events: RefCell<Vec<Vec<u8>>>,
}

impl WorkerLink for Worker {
    fn key(&self) -> (u64, u64) {
        self.key
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn send(&self, event: &[u8]) -> Result<(), Gone> {
        self.events.borrow_mut().push(event.to_vec());
        Ok(())
    }

    fn poll_room(&self) -> Poll<Result<(), Gone>> {
        Poll::Ready(Ok(()))
    }
}

impl Worker {
    /// The messages that have arrived, by connection, with the numbers of their items.
    fn received(&self) -> Vec<(u64, Vec<u8>, u64)> {
        let events = self.events.take();
        let decoded = events.iter().map(|event| StreamEvent::decode(event).unwrap());
        decoded.map(|event| (event.session, event.bytes.to_vec(), event.item)).collect()
    }
}

struct Test {
    server: Rc<StreamServer>,
    workers: Cell<u64>,
}

impl Test {
    fn new() -> Self {
        let sink = Sink::open(Target::Off, Opener::default()).expect("no file is opened");
        let log = Rc::new(ErrorLog::new(Rc::new(sink), Level::Error));
        let server = StreamServer::new("app", &Account::detached(), log);
        Self { server, workers: Cell::new(0) }
    }

    /// A worker of this generation joins under a number.
    fn join(&self, number: u64, generation: u32, settings: &str) -> Rc<Worker> {
        self.workers.update(|count| count + 1);
        let (key, events) = ((generation.into(), self.workers.get()), RefCell::default());
        let worker = Rc::new(Worker { key, generation, events });
        self.call(&worker, Verb::Join, 0, 0, number, settings.as_bytes());
        worker
    }

    fn call(
        &self,
        worker: &Rc<Worker>,
        verb: Verb,
        item: u64,
        session: u64,
        value: u64,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let link: Rc<dyn WorkerLink> = worker.clone();
        let call = StreamCall { verb, is_last: true, item, session, value, bytes };
        self.server.call(&link, &call)
    }

    fn open(&self) -> Rc<Session> {
        self.server.open(0, None, 80, false).unwrap()
    }

    async fn settle(&self) {
        for _ in 0..5 {
            yield_now().await;
        }
    }
}

fn in_loop(test: impl Future<Output = ()> + 'static) {
    run(test).unwrap();
}

#[test]
fn what_a_dead_worker_has_not_acknowledged_is_its_successors() {
    in_loop(async {
        let test = Test::new();
        let worker = test.join(0, 1, "{}");
        let session = test.open();
        for message in [&b"handled"[..], b"responded", b"received"] {
            test.server.enqueue(&session, EventKind::Data, message.to_vec());
        }
        test.settle().await;
        let items: Vec<u64> = worker.received().iter().map(|(_, _, item)| *item).collect();
        test.call(&worker, Verb::Acknowledge, items[0], 0, 0, b"");
        test.call(&worker, Verb::Send, items[1], session.id, 0, b"a response");
        assert_eq!(session.unacknowledged.get(), 2, "the second one is still handled");
        test.server.forget(worker.key);
        test.server.enqueue(&session, EventKind::Data, b"later".to_vec());
        let successor = test.join(0, 1, "{}");
        test.settle().await;
        let first = successor.received();
        assert_eq!((first.len(), &first[0].1[..]), (1, &b"received"[..]), "it may be why");
        test.call(&successor, Verb::Send, first[0].2, session.id, 0, b"");
        test.settle().await;
        assert_eq!(successor.received()[0].1, b"later");
        assert_eq!(session.output.borrow().pending(), b"a response");
        assert_eq!(session.unacknowledged.get(), 2);
    });
}

#[test]
fn a_worker_acknowledges_only_its_own_items() {
    in_loop(async {
        let test = Test::new();
        let (worker, other) = (test.join(0, 1, "{}"), test.join(1, 1, "{}"));
        let sessions = [test.open(), test.open()];
        for session in &sessions {
            test.server.enqueue(session, EventKind::Data, b"text".to_vec());
        }
        test.settle().await;
        let (of_other, _) = (other.received(), worker.received());
        for item in 0..10 {
            test.call(&worker, Verb::Acknowledge, item, 0, 0, b"");
        }
        let left: Vec<usize> = sessions.iter().map(|one| one.unacknowledged.get()).collect();
        assert_eq!(left.iter().sum::<usize>(), 1, "{of_other:?}");
    });
}

#[test]
fn an_item_that_kills_five_workers_closes_its_connection() {
    in_loop(async {
        let test = Test::new();
        let session = test.open();
        test.server.enqueue(&session, EventKind::Data, b"deadly".to_vec());
        for death in 1..=5 {
            let worker = test.join(0, 1, "{}");
            test.settle().await;
            let received = worker.received();
            assert_eq!(received.len(), 1, "worker {death}");
            test.call(&worker, Verb::Start, received[0].2, 0, 0, b"");
            assert!(session.is_open());
            test.server.forget(worker.key);
        }
        assert!(!session.is_open());
        assert_eq!(session.unacknowledged.get(), 0);
    });
}

#[test]
fn a_worker_that_dies_before_it_begins_has_not_died_of_an_item() {
    in_loop(async {
        let test = Test::new();
        let session = test.open();
        test.server.enqueue(&session, EventKind::Data, b"innocent".to_vec());
        for _ in 0..20 {
            let worker = test.join(0, 1, "{}");
            test.settle().await;
            assert_eq!(worker.received().len(), 1);
            test.server.forget(worker.key);
        }
        assert!(session.is_open() && session.unacknowledged.get() == 1);
    });
}

#[test]
fn only_the_item_that_kills_workers_is_given_up() {
    in_loop(async {
        let test = Test::new();
        let sessions: Vec<Rc<Session>> = (0..100).map(|_| test.open()).collect();
        for (number, session) in sessions.iter().enumerate() {
            test.server.enqueue(session, EventKind::Data, vec![u8::from(number == 60)]);
        }
        let mut deaths = 0;
        while test.server.pending() > 0 || deaths == 0 {
            let worker = test.join(0, 1, "{}");
            let mut is_dead = false;
            while !is_dead {
                test.settle().await;
                let received = worker.received();
                if received.is_empty() {
                    break;
                }
                is_dead = received.iter().any(|(_, bytes, _)| bytes == &[1]);
                for (_, _, item) in &received {
                    test.call(&worker, Verb::Start, *item, 0, 0, b"");
                }
                for (_, _, item) in received.iter().filter(|_| !is_dead) {
                    test.call(&worker, Verb::Acknowledge, *item, 0, 0, b"");
                }
            }
            deaths += u32::from(is_dead);
            assert!(deaths <= 5);
            test.server.forget(worker.key);
        }
        let closed: Vec<usize> = (0..100).filter(|at| !sessions[*at].is_open()).collect();
        assert_eq!((closed, deaths), (vec![60], 5));
        assert!(sessions.iter().all(|session| session.unacknowledged.get() == 0));
    });
}

#[test]
fn workers_of_the_next_generation_wait_until_it_is_active() {
    in_loop(async {
        let test = Test::new();
        let (old, session) = (test.join(0, 1, "{}"), test.open());
        let new = test.join(0, 2, "{}");
        test.server.enqueue(&session, EventKind::Data, b"one".to_vec());
        test.settle().await;
        assert_eq!((old.received().len(), new.received().len()), (1, 0));
        let log = test.server.log.borrow().clone();
        test.server.activate(2, log);
        test.server.enqueue(&session, EventKind::Data, b"two".to_vec());
        test.settle().await;
        assert_eq!((old.received().len(), new.received().len()), (0, 1));
        // What the old one leaves is the new one's.
        test.server.forget(old.key);
        test.settle().await;
        assert_eq!(new.received().len(), 1);
    });
}

#[test]
fn calls_about_what_is_not_there_change_nothing() {
    in_loop(async {
        let test = Test::new();
        let (worker, session) = (test.join(0, 1, "{}"), test.open());
        let numbers = [0, 1, 2, u64::from(u32::MAX), u64::MAX];
        for verb in (0..=u8::MAX).filter_map(Verb::from_wire) {
            // These close the connection that is there.
            if matches!(verb, Verb::Close | Verb::Leave) {
                continue;
            }
            for (item, other) in numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))) {
                let absent = if other == session.id { 99 } else { other };
                let text = [0xff; 40];
                test.call(&worker, verb, item, absent, other, &text[..(item % 41) as usize]);
            }
        }
        assert!(session.is_open() && session.output.borrow().pending().is_empty());
        assert_eq!(test.server.sessions.borrow().len(), 1);
        assert_eq!(test.call(&worker, Verb::Room, 0, 99, 0, b""), Some(b"0".to_vec()));
        assert_eq!(test.call(&worker, Verb::Room, 0, session.id, 0, b""), Some(b"1".to_vec()));
    });
}

#[test]
fn output_that_a_client_does_not_read_is_bounded() {
    in_loop(async {
        let test = Test::new();
        let settings = r#"{"ports": [{"output_bytes": 65536}]}"#;
        let (worker, session) = (test.join(0, 1, settings), test.open());
        let piece = vec![b'x'; 32 << 10];
        test.call(&worker, Verb::Send, 0, session.id, 0, &piece);
        assert_eq!(test.call(&worker, Verb::Room, 0, session.id, 0, b""), Some(b"1".to_vec()));
        test.call(&worker, Verb::Send, 0, session.id, 0, &piece);
        assert_eq!(test.call(&worker, Verb::Room, 0, session.id, 0, b""), Some(b"2".to_vec()));
        let kinds = worker.events.take();
        let full = kinds.iter().filter(|event| event[0] == EventKind::Full as u8).count();
        assert_eq!(full, 1, "it is announced once");
        for _ in 0..3 {
            test.call(&worker, Verb::Send, 0, session.id, 0, &piece);
        }
        assert_eq!(session.closing.get(), Closing::Reset);
    });
}
