//! The loop with real sockets, timers and threads.

use crate::*;
use std::cell::Cell;
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

mod ends;

fn listener() -> (Listener, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (Listener::new(listener.into()).unwrap(), address)
}

#[test]
fn an_echo_serves_many_connections_at_once() {
    let total = run(async {
        let (listener, address) = listener();
        let served = Rc::new(Cell::new(0));
        let done = Rc::new(Event::default());
        let clients = std::thread::spawn(move || {
            let mut streams: Vec<_> =
                (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
            for round in 0..20_u8 {
                for stream in &mut streams {
                    stream.write_all(&[round; 100]).unwrap();
                }
                for stream in &mut streams {
                    let mut answer = [0; 100];
                    stream.read_exact(&mut answer).unwrap();
                    assert_eq!(answer, [round; 100]);
                }
            }
        });
        for _ in 0..50 {
            let Accepted { stream, peer } = listener.accept().await.unwrap();
            assert!(matches!(peer, Peer::Tcp(_)));
            let (served, done) = (served.clone(), done.clone());
            spawn(async move {
                let mut buffer = Vec::with_capacity(256);
                while stream.read(&mut buffer).await.unwrap() > 0 {
                    stream.write_all(&mut [IoSlice::new(&buffer)]).await.unwrap();
                    buffer.clear();
                }
                served.set(served.get() + 1);
                done.set();
            });
        }
        blocking(move || clients.join().unwrap()).await;
        while served.get() < 50 {
            done.wait().await;
        }
        served.get()
    });
    assert_eq!(total.unwrap(), 50);
}

#[test]
fn a_pipelined_message_is_masked_until_it_is_read() {
    run(async {
        let (listener, address) = listener();
        let mut client = TcpStream::connect(address).unwrap();
        let Accepted { stream, .. } = listener.accept().await.unwrap();
        client.write_all(b"one").unwrap();
        let mut buffer = Vec::with_capacity(64);
        stream.read(&mut buffer).await.unwrap();
        client.write_all(b"two").unwrap();
        let waited =
            with_deadline(now_ms() + 60, std::future::poll_fn(|_| stream.source().poll_hangup()));
        assert_eq!(waited.await, Err(Elapsed), "data is not a hang-up");
        stream.read(&mut buffer).await.unwrap();
        assert_eq!(buffer, b"onetwo");
        drop(client);
        std::future::poll_fn(|_| stream.source().poll_hangup()).await;
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 0);
    })
    .unwrap();
}

#[test]
fn a_large_write_waits_for_a_slow_reader() {
    run(async {
        let (listener, address) = listener();
        let mut client = TcpStream::connect(address).unwrap();
        let Accepted { stream, .. } = listener.accept().await.unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            client.read_to_end(&mut all).unwrap();
            all
        });
        let (first, second) = (vec![1; 3_000_000], vec![2; 5_000_000]);
        let slices = &mut [IoSlice::new(&first), IoSlice::new(&[]), IoSlice::new(&second)];
        stream.write_all(slices).await.unwrap();
        drop(stream);
        let all = blocking(move || reader.join().unwrap()).await;
        assert_eq!((all.len(), all[2_999_999], all[3_000_000]), (8_000_000, 1, 2));
    })
    .unwrap();
}

#[test]
fn sleeps_end_in_order_and_deadlines_end_waits() {
    run(async {
        let order = Rc::new(std::cell::RefCell::new(Vec::new()));
        let done = Rc::new(Event::default());
        for ms in [30, 10, 20] {
            let (order, done) = (order.clone(), done.clone());
            spawn(async move {
                sleep(ms).await;
                order.borrow_mut().push(ms);
                done.set();
            });
        }
        while order.borrow().len() < 3 {
            done.wait().await;
        }
        assert_eq!(*order.borrow(), [10, 20, 30]);
        let never = Event::default();
        assert_eq!(with_deadline(now_ms() + 5, never.wait()).await, Err(Elapsed));
        assert_eq!(with_deadline(now_ms() + 5_000, sleep(1)).await, Ok(()));
    })
    .unwrap();
}

struct Countdown {
    left: u32,
    event: Rc<Event>,
    prepared: Rc<Cell<i32>>,
}

impl MemorySource for Countdown {
    fn look(&mut self) -> bool {
        let any = self.left > 0;
        if any {
            self.left -= 1;
            self.event.set();
        }
        any
    }

    fn prepare_sleep(&mut self) -> u64 {
        self.prepared.set(self.prepared.get() + 1);
        if self.left > 0 { 0 } else { u64::MAX }
    }

    fn cancel_sleep(&mut self) {
        self.prepared.set(0);
    }
}

#[test]
fn the_memory_source_is_polled_before_each_sleep() {
    run(async {
        let event = Rc::new(Event::default());
        let prepared = Rc::new(Cell::new(0));
        watch_memory(Countdown { left: 3, event: event.clone(), prepared: prepared.clone() });
        for _ in 0..3 {
            event.wait().await;
        }
        sleep(5).await;
        assert_eq!(prepared.get(), 0, "every announcement was taken back on waking up");
    })
    .unwrap();
}

#[test]
fn a_caught_signal_is_delivered() {
    run(async {
        let signals = Signals::catch(signal_hook::consts::SIGUSR1).unwrap();
        signal_hook::low_level::raise(signal_hook::consts::SIGUSR1).unwrap();
        std::future::poll_fn(|_| signals.poll()).await;
    })
    .unwrap();
}

#[test]
fn a_task_that_always_has_work_yields_to_others() {
    run(async {
        spawn(async {
            loop {
                share_turn(1).await;
            }
        });
        sleep(5).await;
    })
    .unwrap();
}

#[test]
fn a_socket_that_is_always_readable_yields_after_a_turn() {
    run(async {
        let (listener, address) = listener();
        let mut client = TcpStream::connect(address).unwrap();
        let Accepted { stream, .. } = listener.accept().await.unwrap();
        client.write_all(&[0; 100_000]).unwrap();
        let (mut buffer, mut most) = (Vec::with_capacity(16), 0);
        for _ in 0..3 {
            stream.source().readable().await;
            let mut reads = 0;
            while stream.try_read(&mut buffer).unwrap().is_some() {
                buffer.clear();
                reads += 1;
            }
            assert!(stream.source().poll_readable().is_pending(), "it waits for its next turn");
            assert!(without_budget(|| stream.source().poll_readable()).is_ready());
            most = most.max(reads);
        }
        assert!((1..=64).contains(&most), "{most}");
    })
    .unwrap();
}

#[test]
fn only_work_from_outside_is_activity() {
    run(async {
        let seen = Rc::new(Cell::new(false));
        let noted = seen.clone();
        spawn(async move {
            activity().await;
            noted.set(true);
        });
        sleep(30).await;
        sleep(30).await;
        assert!(!seen.get(), "a timer is no activity");
        // The thread ends only after this task has begun to wait for it.
        let (sender, receiver) = std::sync::mpsc::channel();
        spawn(async move { sender.send(()).unwrap() });
        blocking(move || receiver.recv().unwrap()).await;
        yield_now().await;
        assert!(seen.get(), "the thread has rung");
    })
    .unwrap();
}

#[test]
fn loops_that_share_a_socket_accept_each_connection_once() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (accepted, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let loops = (0..2).map(|_| {
        let (socket, accepted) = (socket.try_clone().unwrap(), accepted.clone());
        let done = done.clone();
        std::thread::spawn(move || {
            run(async move {
                let listener = Listener::shared(socket.into()).unwrap();
                spawn(async move {
                    while listener.accept().await.is_ok() {
                        accepted.fetch_add(1, Ordering::Relaxed);
                    }
                });
                while !done.load(Ordering::Relaxed) {
                    sleep(1).await;
                }
            })
            .unwrap();
        })
    });
    let loops: Vec<_> = loops.collect();
    for _ in 0..50 {
        // It is closed once it is accepted.
        let mut rest = Vec::new();
        TcpStream::connect(address).unwrap().read_to_end(&mut rest).unwrap();
    }
    done.store(true, Ordering::Relaxed);
    loops.into_iter().for_each(|one| one.join().unwrap());
    assert_eq!(accepted.load(Ordering::Relaxed), 50);
}

#[test]
fn a_connection_that_nothing_waits_for_is_accepted_later() {
    run(async {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let listener = Listener::shared(socket.into()).unwrap();
        assert!(listener.try_accept().unwrap().is_none());
        let client = blocking(move || TcpStream::connect(address).unwrap()).await;
        // The event arrives while no task waits for it, so it is masked.
        for _ in 0..4 {
            sleep(1).await;
        }
        assert!(listener.poll_incoming().is_ready());
        drop((listener.accept().await.unwrap(), client));
        let client = std::thread::spawn(move || TcpStream::connect(address).unwrap());
        drop((listener.accept().await.unwrap(), client.join().unwrap()));
    })
    .unwrap();
}
