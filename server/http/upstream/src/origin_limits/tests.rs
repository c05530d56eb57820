//! Limits that loops on several threads use.

use super::*;
use outboard_reactor::{contain, run, spawn, yield_now};
use std::pin::pin;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};

fn limits(requests_per_host: usize, waiting_per_host: usize) -> Arc<OriginLimits> {
    let settings = Settings {
        requests_per_host,
        waiting_per_host,
        wait_ms: 60_000,
        idle_per_host: 2,
        ..Settings::default()
    };
    OriginLimits::new("http://a", &settings)
}

/// Runs a task in a loop on a thread of its own.
fn on_thread<F: Future<Output = T> + 'static, T: Send + 'static>(
    limits: &Arc<OriginLimits>,
    task: impl FnOnce(Arc<OriginLimits>) -> F + Send + 'static,
) -> JoinHandle<T> {
    let limits = limits.clone();
    thread::spawn(move || run(async move { task(limits).await }).unwrap())
}

fn until_so_many_wait(limits: &OriginLimits, count: usize) {
    while limits.waiting() != count {
        thread::yield_now();
    }
}

#[test]
fn requests_of_all_loops_stay_within_the_limit_and_none_is_lost() {
    const TASKS: usize = 16;
    let (limits, present) = (limits(3, 1024), Arc::new(AtomicUsize::new(0)));
    let loops = [(); 4].map(|()| {
        let present = present.clone();
        on_thread(&limits, async move |limits| {
            let ended = Arc::new(AtomicUsize::new(0));
            for _ in 0..TASKS {
                let (limits, present, ended) = (limits.clone(), present.clone(), ended.clone());
                spawn(async move {
                    for _ in 0..50 {
                        let right = limits.enter(u64::MAX).await.unwrap();
                        assert!(present.fetch_add(1, Ordering::SeqCst) < 3);
                        yield_now().await;
                        present.fetch_sub(1, Ordering::SeqCst);
                        drop(right);
                    }
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
            while ended.load(Ordering::SeqCst) < TASKS {
                yield_now().await;
            }
        })
    });
    loops.into_iter().for_each(|one| one.join().unwrap());
    let rights: Vec<Right> = (0..3).map(|_| limits.begin().unwrap()).collect();
    assert!(rights.iter().all(|right| matches!(right.stage, Stage::Request)), "all are free");
}

#[test]
fn loops_wait_in_the_order_of_arrival_up_to_the_length_of_the_queue() {
    let limits = limits(1, 3);
    let first = limits.begin().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let loops: Vec<_> = (0..3)
        .map(|number| {
            let order = order.clone();
            let waiting = on_thread(&limits, async move |limits| {
                let right = limits.enter(u64::MAX).await.unwrap();
                order.lock().unwrap().push(number);
                drop(right);
            });
            until_so_many_wait(&limits, number + 1);
            waiting
        })
        .collect();
    assert_eq!(limits.begin().unwrap_err().kind, Kind::Busy);
    drop(first);
    loops.into_iter().for_each(|one| one.join().unwrap());
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
}

#[test]
fn a_loop_that_gives_up_leaves_its_place_to_others() {
    let limits = limits(1, 3);
    let first = limits.begin().unwrap();
    let late = on_thread(&limits, async |limits| limits.enter(now_ms() + 10).await.err());
    assert_eq!(late.join().unwrap().map(|error| error.kind), Some(Kind::Busy));
    assert_eq!(limits.waiting(), 0);
    let ended = on_thread(&limits, async |limits| {
        // The loop ends while its task waits.
        spawn(async move { drop(limits.enter(u64::MAX).await) });
        yield_now().await;
    });
    ended.join().unwrap();
    assert_eq!(limits.waiting(), 0);
    drop(first);
    assert!(matches!(limits.begin().unwrap().stage, Stage::Request));
}

#[test]
fn a_permit_of_a_dropped_request_goes_to_the_next_one() {
    let limits = limits(1, 3);
    let first = limits.begin().unwrap();
    let theirs = limits.clone();
    let (waits, is_waiting) = std::sync::mpsc::channel();
    let (grant, granted) = std::sync::mpsc::channel();
    let dropping = on_thread(&limits, async move |limits| {
        let mut request = Box::pin(limits.enter(u64::MAX));
        let is_ready = poll_fn(|context| Poll::Ready(request.as_mut().poll(context).is_ready()));
        assert!(!is_ready.await);
        waits.send(()).unwrap();
        granted.recv().unwrap();
        assert_eq!(theirs.waiting(), 1, "this one has been granted the permit");
        drop(request);
    });
    is_waiting.recv().unwrap();
    let next = on_thread(&limits, async |limits| limits.enter(u64::MAX).await.map(drop));
    until_so_many_wait(&limits, 2);
    drop(first);
    grant.send(()).unwrap();
    dropping.join().unwrap();
    next.join().unwrap().unwrap();
}

#[test]
fn a_contained_panic_returns_its_permit() {
    let limits = limits(1, 3);
    let panicking = on_thread(&limits, async |limits| {
        let (theirs, queued) = (limits.clone(), limits.clone());
        let spawned = contain(|| {
            spawn(async move {
                let _right = theirs.enter(u64::MAX).await;
                yield_now().await;
                panic!("of a test");
            });
        });
        assert!(spawned.is_ok());
        yield_now().await;
        drop(queued.enter(u64::MAX).await.unwrap());
    });
    panicking.join().unwrap();
    assert!(matches!(limits.begin().unwrap().stage, Stage::Request));
}

#[test]
fn a_response_makes_room_for_a_request_of_another_loop() {
    let limits = limits(1, 3);
    let mut first = limits.begin().unwrap();
    let waiting = on_thread(&limits, async |limits| limits.enter(u64::MAX).await.map(drop));
    until_so_many_wait(&limits, 1);
    assert!(first.count_as_response() && !first.count_as_response());
    waiting.join().unwrap().unwrap();
}

#[test]
fn idle_connections_are_counted_until_they_are_used() {
    let limits = limits(1, 0);
    let kept = [limits.keep_idle(), limits.keep_idle()];
    assert!(kept.iter().all(Option::is_some) && limits.keep_idle().is_none());
    drop(kept);
    assert!(limits.keep_idle().is_some());
}

#[test]
fn a_spurious_poll_changes_nothing() {
    run(async {
        let limits = limits(1, 3);
        let first = limits.begin().unwrap();
        let mut waiting = pin!(limits.enter(u64::MAX));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..2 {
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            assert_eq!(limits.waiting(), 1);
        }
        drop(first);
        assert!(waiting.as_mut().poll(&mut context).is_ready());
    })
    .unwrap();
}
