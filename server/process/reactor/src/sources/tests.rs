//! The table of descriptors with a real epoll, without a loop around it.

use super::*;
use crate::{Event, Source, run};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// A table with one socket, and the other end of that.
struct Watched {
    epoll: OwnedFd,
    sources: Sources,
    token: Token,
    peer: UnixStream,
}

/// The id of a task of a loop that has ended; each loop gives the same ids.
fn task(number: usize) -> TaskId {
    run(async move {
        let (id, done) = (Rc::new(Cell::new(None)), Rc::new(Event::default()));
        for index in 0..=number {
            let (id, done) = (id.clone(), done.clone());
            crate::spawn(async move {
                if index == number {
                    id.set(Some(crate::current_task()));
                    done.set();
                }
            });
        }
        done.wait().await;
        id.get().expect("the task has run")
    })
    .unwrap()
}

impl Watched {
    fn new() -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let (own, peer) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let mut sources = Sources::default();
        let own = Rc::new(OwnedFd::from(own));
        let token = sources.add(&epoll, own, Interest::Read, None).unwrap();
        Self { epoll, sources, token, peer }
    }

    /// Notes the events that epoll has now; the tasks that they wake.
    fn notice(&mut self) -> (usize, Vec<TaskId>) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(8);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spare = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(&self.epoll, spare, Some(&now)).unwrap();
        let woken = events.iter().filter_map(|event| {
            let token = Token::unpack(event.data.u64());
            assert_eq!(token, self.token);
            match self.sources.notice(&self.epoll, token, event.flags) {
                Noticed::Task(task) => Some(task),
                Noticed::Nothing => None,
                Noticed::Bell(bell) => panic!("{bell:?} has been rung"),
            }
        });
        let woken = woken.collect();
        (events.len(), woken)
    }

    fn poll(&mut self, wanted: EventFlags, number: usize) -> Poll<()> {
        self.sources.poll(&self.epoll, self.token, wanted, || task(number))
    }
}

#[test]
fn a_token_survives_the_user_data_of_epoll() {
    for (index, generation) in [(0, 0), (0, 1), (1, 0), (u32::MAX, 7), (7, u32::MAX)] {
        let token = Token { index, generation };
        assert_eq!(Token::unpack(token.pack()), token);
    }
}

#[test]
fn an_event_without_a_waiting_task_is_masked_until_the_next_wait() {
    let mut watched = Watched::new();
    watched.peer.write_all(b"pipelined").unwrap();
    assert_eq!(watched.notice(), (1, vec![]));
    assert_eq!(watched.notice(), (0, vec![]), "it is masked");
    assert!(watched.poll(READ, 0).is_ready(), "it is known");
    watched.sources.clear(watched.token, READ);
    assert!(watched.poll(READ, 0).is_pending());
    assert_eq!(watched.notice(), (1, vec![task(0)]), "the wait has unmasked it");
}

#[test]
fn of_two_waiting_tasks_the_last_one_is_woken() {
    let mut watched = Watched::new();
    assert!(watched.poll(READ, 0).is_pending());
    assert!(watched.poll(READ, 1).is_pending());
    watched.peer.write_all(b"data").unwrap();
    assert_eq!(watched.notice(), (1, vec![task(1)]));
}

#[test]
fn data_does_not_wake_a_task_that_waits_for_the_end() {
    let mut watched = Watched::new();
    assert!(watched.poll(HANGUP, 0).is_pending());
    watched.peer.write_all(b"data").unwrap();
    assert_eq!(watched.notice(), (1, vec![]));
    watched.peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(watched.notice(), (1, vec![task(0)]));
}

#[test]
fn writability_is_reported_once_for_each_wait() {
    let mut watched = Watched::new();
    assert_eq!(watched.notice(), (0, vec![]), "an idle socket has no event");
    assert!(watched.poll(WRITE, 0).is_pending());
    assert_eq!(watched.notice(), (1, vec![task(0)]));
    assert_eq!(watched.notice(), (0, vec![]));
    assert!(watched.poll(WRITE, 0).is_ready());
    watched.sources.clear(watched.token, WRITE);
    assert!(watched.poll(WRITE, 1).is_pending());
    assert_eq!(watched.notice(), (1, vec![task(1)]));
}

#[test]
fn a_half_closed_peer_stays_readable_and_may_delay_writes() {
    let mut watched = Watched::new();
    watched.peer.shutdown(Shutdown::Write).unwrap();
    assert!(watched.poll(READ | WRITE, 0).is_pending());
    watched.notice();
    watched.sources.clear(watched.token, READ | WRITE);
    assert!(watched.poll(READ, 0).is_ready(), "the end of the stream can be read again");
    assert!(watched.poll(HANGUP, 0).is_ready());
    assert!(watched.poll(GONE, 0).is_pending());
    assert!(watched.poll(WRITE, 0).is_pending());
}

#[test]
fn a_peer_that_is_gone_ends_every_wait_and_is_reported_once() {
    let mut watched = Watched::new();
    watched.peer = UnixStream::pair().unwrap().0;
    assert_eq!(watched.notice(), (1, vec![]));
    assert_eq!(watched.notice(), (0, vec![]), "an event that cannot be masked would spin the loop");
    watched.sources.clear(watched.token, READ | WRITE);
    for condition in [READ, WRITE, HANGUP, GONE] {
        assert!(watched.poll(condition, 0).is_ready(), "{condition:?}");
    }
}

#[test]
fn the_token_of_a_removed_source_does_nothing_to_its_successor() {
    let mut watched = Watched::new();
    let removed = watched.token;
    assert!(watched.poll(READ, 0).is_pending());
    watched.sources.remove(&watched.epoll, removed);
    let (own, mut peer) = UnixStream::pair().unwrap();
    let own = Rc::new(OwnedFd::from(own));
    let successor = watched.sources.add(&watched.epoll, own, Interest::Read, None).unwrap();
    assert_eq!(successor.index, removed.index, "the place is used again");
    assert!(watched.poll(READ, 0).is_ready(), "a wait for a removed source ends");
    let noticed = watched.sources.notice(&watched.epoll, removed, READ);
    assert!(matches!(noticed, Noticed::Nothing));
    watched.sources.clear(removed, READ);
    watched.sources.remove(&watched.epoll, removed);
    watched.token = successor;
    assert!(watched.poll(READ, 1).is_pending());
    peer.write_all(b"data").unwrap();
    assert_eq!(watched.notice(), (1, vec![task(1)]));
}

#[test]
fn a_removed_source_is_silent_although_it_has_a_duplicate() {
    let mut watched = Watched::new();
    let fd = watched.sources.state(watched.token).unwrap().fd.clone();
    let mut duplicate = UnixStream::from(fd.try_clone().unwrap());
    drop(fd);
    watched.sources.remove(&watched.epoll, watched.token);
    watched.peer.write_all(b"data").unwrap();
    assert_eq!(watched.notice(), (0, vec![]));
    let mut data = [0; 4];
    duplicate.read_exact(&mut data).unwrap();
    assert_eq!(&data, b"data");
}

#[test]
fn a_regular_file_is_rejected_and_takes_no_place() {
    let mut watched = Watched::new();
    let file = OwnedFd::from(File::open(std::env::current_exe().unwrap()).unwrap());
    let refused = watched.sources.add(&watched.epoll, Rc::new(file), Interest::Read, None);
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(watched.sources.states.len(), 1);
}

#[derive(Debug, Default)]
struct Count(Cell<u32>, Event);

impl Bell for Count {
    fn ring(&self) {
        self.0.set(self.0.get() + 1);
        self.1.set();
    }
}

#[test]
fn each_change_of_an_eventfd_that_is_never_read_rings_its_bell() {
    run(async {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let writer = eventfd.try_clone().unwrap();
        let count = Rc::new(Count::default());
        let source = Source::with_bell(eventfd, count.clone()).unwrap();
        for rings in 1..4 {
            rustix::io::write(&writer, &1_u64.to_ne_bytes()).unwrap();
            count.1.wait().await;
            assert_eq!(count.0.get(), rings);
        }
        drop(source);
        assert_eq!(Rc::strong_count(&count), 1);
    })
    .unwrap();
}
