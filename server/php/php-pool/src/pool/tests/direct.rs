//! Direct connections: a stand-in answers on them, gives them back, dies with them, and lies about them.

use super::*;
use crate::exchange::ExchangeSettings;
use outboard_buffer::Account;
use outboard_reactor::sleep;
use outboard_ring::direct::{Answered, Greeting, Returned, Taken};
use rustix::fd::{AsFd, OwnedFd};
use std::task::Poll;

/// A lie: a worker cannot put off its deadline by it.
const RECEIVED_US: u64 = u64::MAX;
const REQUEST: &[u8] = b"GET /a/b HTTP/1.1\r\nHost: a\r\n\r\n";

/// A worker with the other end of the socket that connections come over.
pub(super) struct Direct {
    pub(super) pool: Rc<Pool>,
    pub(super) worker: StandIn,
    socket: OwnedFd,
}

pub(super) fn direct_with(concurrency: u32) -> Direct {
    let pool =
        pool_of(PoolSettings { has_direct: true, ..settings(concurrency, Isolation::Reset) });
    let worker = StandIn::join(&pool, 1);
    let (ours, socket) = control::pair().unwrap();
    let mut members = pool.core.members.borrow_mut();
    members.roster.with_number(1).unwrap().process.set_direct(ours);
    drop(members);
    Direct { pool, worker, socket }
}

impl Direct {
    fn try_park(&mut self) -> Option<DirectConnection> {
        let greeting = Greeting {
            slot: 0,
            generation: 0,
            requests: 10,
            request_id: 1,
            remote_addr: String::new(),
            remote_port: 1,
            server_addr: String::new(),
            server_port: 2,
            compress_min_bytes: 0,
            request_line_bytes: 1_000,
            head_bytes: 1_000,
            header_count: 10,
            body_bytes: 10,
        };
        let memory = Account::detached();
        let settings = ExchangeSettings { buffer_bytes: 1_000, memory, longest_ms: DEADLINE_MS };
        let socket = self.socket.as_fd();
        self.pool.park(&frame("/a/b"), socket, greeting, settings)
    }

    pub(super) fn park(&mut self) -> (DirectConnection, Tag) {
        let parked = self.try_park().expect("room");
        assert_eq!(self.worker.receive().map(|(kind, _)| kind), Some(FrameKind::Template));
        let (greeting, sockets) = control::receive::<Greeting>(&self.socket).unwrap().unwrap();
        assert_eq!(sockets.len(), 1);
        (parked, greeting.tag())
    }

    /// The worker reads a request; its tag.
    pub(super) fn take(&mut self, before: Tag) -> Tag {
        assert!(self.worker.channel.begin_direct(before));
        let tag = Tag { generation: before.generation + 1, ..before };
        let taken = Taken { request_id: 7, received_us: RECEIVED_US, request: REQUEST };
        self.worker.send(FrameKind::Taken, tag, &[&taken.prefix()[..], REQUEST].concat());
        self.worker.channel.run_direct(before, tag);
        tag
    }

    pub(super) fn answer(&mut self, tag: Tag) -> bool {
        let begun = self.worker.channel.begin_answer(tag);
        let answered = Answered { status: 200, body_bytes: 2, ..Answered::default() };
        self.worker.send(FrameKind::Answered, tag, &answered.encode());
        begun && self.worker.channel.end_answer(tag)
    }

    fn counts(&self) -> (u64, u64, usize) {
        let status = self.pool.status();
        (status.direct_requests, status.adopted_requests, status.direct_connections)
    }
}

#[track_caller]
pub(super) fn event(parked: &mut DirectConnection) -> DirectEvent {
    match parked.poll_event() {
        Poll::Ready(event) => event,
        Poll::Pending => panic!("no event"),
    }
}

#[test]
fn a_worker_answers_and_the_gateway_counts() {
    in_loop(async {
        let mut direct = direct_with(1);
        let (mut parked, mut tag) = direct.park();
        for _ in 0..3 {
            tag = direct.take(tag);
            assert!(direct.answer(tag));
        }
        poll(&direct.pool);
        for _ in 0..3 {
            let DirectEvent::Answered {
                request,
                request_id: 7,
                received_us: RECEIVED_US,
                answered,
            } = event(&mut parked)
            else {
                panic!("another event")
            };
            assert_eq!((&request[..], answered.status), (REQUEST, 200));
        }
        assert!(parked.poll_event().is_pending());
        assert_eq!(direct.counts(), (3, 0, 1));
        assert_eq!(direct.pool.status().requests, 3);
        assert_eq!(direct.pool.status().routes[0].route, "/a/b");
    });
}

#[test]
fn a_frame_of_a_response_makes_an_exchange_of_the_request() {
    in_loop(async {
        let mut direct = direct_with(1);
        let (mut parked, tag) = direct.park();
        let tag = direct.take(tag);
        direct.worker.channel.pass_on(tag);
        direct.worker.send(FrameKind::Head, tag, b"head");
        poll(&direct.pool);
        let DirectEvent::Adopted { request, exchange, .. } = event(&mut parked) else {
            panic!("another event")
        };
        assert_eq!((&request[..], exchange.label()), (REQUEST, "GET /a/b".to_owned()));
        assert_eq!(direct.worker.state(&direct.pool), Some(State::Busy));
        direct.worker.send(FrameKind::Body, tag, b"body");
        direct.worker.finish(tag, false);
        poll(&direct.pool);
        assert_eq!(body_of(&exchange), (b"body".to_vec(), COMPLETE));
        assert_eq!(direct.worker.state(&direct.pool), Some(State::Idle));
        assert_eq!(direct.counts(), (0, 1, 0));
    });
}

#[test]
fn a_long_request_is_adopted_and_holds_up_nothing_behind_it() {
    in_loop(async {
        let mut direct = direct_with(1);
        let (mut slow, tag) = direct.park();
        let (mut other, other_tag) = direct.park();
        let tag = direct.take(tag);
        poll(&direct.pool);
        let behind = submit(&direct.pool);
        let mut second = StandIn::join(&direct.pool, 2);
        sleep(60).await;
        poll(&direct.pool);
        assert!(matches!(event(&mut slow), DirectEvent::Adopted { .. }));
        assert!(matches!(event(&mut other), DirectEvent::Returned { .. }));
        assert!(!direct.worker.channel.begin_direct(other_tag), "it is the gateway's again");
        assert!(!direct.worker.channel.begin_answer(tag));
        second.process_next(&direct.pool);
        assert_eq!(body_of(&behind).1, COMPLETE);
    });
}

#[test]
fn a_worker_with_a_long_request_of_the_ring_has_no_connections() {
    in_loop(async {
        let mut direct = direct_with(1);
        let (mut parked, tag) = direct.park();
        let _long = submit(&direct.pool);
        direct.worker.start_next();
        sleep(60).await;
        poll(&direct.pool);
        assert!(matches!(event(&mut parked), DirectEvent::Returned { .. }));
        assert!(!direct.worker.channel.begin_direct(tag));
        assert!(direct.try_park().is_none(), "it would wait");
    });
}

#[test]
fn a_connection_comes_back_as_soon_as_it_can() {
    in_loop(async {
        let mut direct = direct_with(1);
        let (mut idle, tag) = direct.park();
        idle.take_back();
        assert!(matches!(event(&mut idle), DirectEvent::Returned { .. }));
        assert!(!direct.worker.channel.begin_direct(tag));
        // While it is read from.
        let (mut read, tag) = direct.park();
        assert!(direct.worker.channel.begin_direct(tag));
        read.take_back();
        assert!(read.poll_event().is_pending());
        direct.worker.channel.end_direct(tag);
        sleep(60).await;
        poll(&direct.pool);
        assert!(matches!(event(&mut read), DirectEvent::Returned { .. }));
        // While a response is written.
        let (mut written, tag) = direct.park();
        let tag = direct.take(tag);
        poll(&direct.pool);
        assert!(direct.worker.channel.begin_answer(tag));
        written.take_back();
        assert!(!direct.worker.channel.end_answer(tag), "it has to go back");
        let returned = Returned { unsent: b"rest", unread: b"next" };
        let payload = [&returned.prefix()[..], b"rest", b"next"].concat();
        direct.worker.send(FrameKind::Returned, tag, &payload);
        direct.worker.channel.give_back(tag);
        poll(&direct.pool);
        let DirectEvent::Returned { unsent, unread, .. } = event(&mut written) else {
            panic!("another event")
        };
        assert_eq!((&unsent[..], &unread[..]), (&b"rest"[..], &b"next"[..]));
        assert_eq!(direct.counts().2, 0);
    });
}

#[test]
fn a_dropped_connection_comes_back_and_its_slot_is_used_again() {
    in_loop(async {
        let mut direct = direct_with(1);
        for _ in 0..1_000 {
            let (parked, _) = direct.park();
            drop(parked);
        }
        assert_eq!(direct.counts().2, 0);
    });
}

#[test]
fn a_death_costs_only_what_was_begun() {
    in_loop(async {
        let mut direct = direct_with(4);
        let (mut idle, _) = direct.park();
        let (mut reading, tag) = direct.park();
        assert!(direct.worker.channel.begin_direct(tag));
        let (mut running, tag) = direct.park();
        direct.take(tag);
        let (mut writing, tag) = direct.park();
        let tag = direct.take(tag);
        assert!(direct.worker.channel.begin_answer(tag));
        let (pool, worker) = (direct.pool.clone(), direct.worker);
        worker.die(&pool);
        assert!(matches!(event(&mut idle), DirectEvent::Returned { .. }));
        assert!(matches!(event(&mut reading), DirectEvent::Lost));
        assert!(matches!(event(&mut writing), DirectEvent::Lost));
        let DirectEvent::Adopted { exchange, .. } = event(&mut running) else {
            panic!("another event")
        };
        assert_eq!(body_of(&exchange).1, Some(End::Failed(Reason::WorkerCrashed)));
    });
}

#[test]
fn a_draining_worker_keeps_no_connection() {
    in_loop(async {
        let mut direct = direct_with(4);
        let ((mut idle, _), (mut running, tag)) = (direct.park(), direct.park());
        let tag = direct.take(tag);
        poll(&direct.pool);
        {
            let core = &direct.pool.core;
            let mut members = core.members.borrow_mut();
            core.drain_slot(&mut members, 0);
        }
        assert!(matches!(event(&mut idle), DirectEvent::Returned { .. }));
        assert!(matches!(event(&mut running), DirectEvent::Adopted { .. }));
        direct.worker.finish(tag, false);
        poll(&direct.pool);
        assert_eq!(direct.worker.receive().map(|(kind, _)| kind), Some(FrameKind::Stop));
    });
}

#[test]
fn a_worker_that_lies_about_connections_is_killed_or_not_believed() {
    in_loop(async {
        let answered = Answered { status: 200, ..Answered::default() }.encode();
        let taken =
            [&Taken { request_id: 1, received_us: 1, request: REQUEST }.prefix()[..], REQUEST];
        let taken = taken.concat();
        // Of a connection that it does not have.
        let mut direct = direct_with(1);
        let (mut parked, tag) = direct.park();
        for foreign in [Tag { slot: tag.slot + 1, ..tag }, Tag { generation: 99, ..tag }] {
            for (kind, payload) in [
                (FrameKind::Taken, &taken[..]),
                (FrameKind::Answered, &answered[..]),
                (FrameKind::Returned, &[0; 4]),
                (FrameKind::Head, b"head"),
            ] {
                direct.worker.send(kind, foreign, payload);
            }
        }
        poll(&direct.pool);
        assert!(parked.poll_event().is_pending());
        assert_eq!(direct.worker.state(&direct.pool), Some(State::Idle));
        // An answer to no request, two requests at once, and what is no frame.
        for lie in 0..3 {
            let mut direct = direct_with(1);
            let (_parked, tag) = direct.park();
            match lie {
                0 => direct.worker.send(FrameKind::Answered, tag, &answered),
                1 => {
                    let tag = direct.take(tag);
                    let next = Tag { generation: tag.generation + 1, ..tag };
                    direct.worker.send(FrameKind::Taken, next, &taken);
                }
                _ => direct.worker.send(FrameKind::Returned, tag, b"\xff\xff\xff\xff"),
            }
            poll(&direct.pool);
            assert_eq!(direct.worker.state(&direct.pool), Some(State::Killing), "{lie}");
        }
    });
}
