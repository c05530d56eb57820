//! Workers that one thread forks for the requests of another.

use super::threads::Threads;
use super::*;
use outboard_reactor::{now_ms, sleep};
use outboard_supervisor::cpu::Sample;

fn small() -> PoolSettings {
    PoolSettings { min: Some(1), max: Some(2), ..sequential() }
}

fn forks(threads: &Threads) -> Vec<u64> {
    threads.pools.iter().map(|pool| pool.status().forks).collect()
}

/// A thread whose part is one worker, which is busy, and a request that has waited.
async fn with_waiting_request() -> (Threads, StandIn, Rc<Exchange>) {
    let threads = Threads::new(2, small);
    let mut worker = StandIn::join_forked(&threads.pools[0], 1);
    submit(&threads.pools[0]);
    worker.start_next();
    threads.pools.iter().for_each(|pool| pool.resize(now_ms()));
    let waiting = submit(&threads.pools[0]);
    threads.settle().await;
    sleep(10).await;
    (threads, worker, waiting)
}

#[test]
fn a_thread_at_its_maximum_has_another_one_fork() {
    in_loop(async {
        let (threads, _worker, waiting) = with_waiting_request().await;
        threads.pools[0].resize(now_ms());
        threads.settle().await;
        assert_eq!(forks(&threads), [0, 1]);
        // It is not forked twice while it starts, nor beyond the maximum of all.
        sleep(60).await;
        threads.pools[0].resize(now_ms());
        threads.settle().await;
        assert_eq!(forks(&threads), [0, 1]);
        threads.pools[1].reap(2, None, "could not be forked");
        let mut fork = StandIn::join_forked(&threads.pools[1], 2);
        threads.settle().await;
        fork.process_next(&threads.pools[0]);
        assert_eq!(end_of(&waiting), COMPLETE);
    });
}

#[test]
fn a_pool_that_retires_forks_no_workers_for_others() {
    in_loop(async {
        let (threads, _worker, _waiting) = with_waiting_request().await;
        threads.pools[1].core.lifecycle.enter(Phase::Retiring);
        threads.pools[0].resize(now_ms());
        threads.settle().await;
        assert_eq!(forks(&threads), [0, 0]);
    });
}

/// A lent worker may be blocked as well as compute.
#[test]
fn a_thread_whose_worker_is_lent_grows_though_processors_are_busy() {
    in_loop(async {
        let threads = Threads::new(2, || PoolSettings { max: Some(3), ..small() });
        let _own = StandIn::join_forked(&threads.pools[0], 1);
        let _lent = StandIn::join_forked(&threads.pools[1], 2);
        let _busy = [submit(&threads.pools[0]), submit(&threads.pools[0])];
        threads.settle().await;
        assert_eq!(threads.threads_of(2), [0]);
        threads.pools[0].resize(now_ms());
        let _waiting = submit(&threads.pools[1]);
        sleep(10).await;
        {
            let sizing = &mut threads.pools[1].dispatcher.sizing.borrow_mut();
            sizing.cpu = Sample::take(now_ms()).map(|sample| (now_ms(), sample));
            sizing.cpu_busy_percent = Some(100);
        }
        threads.pools[1].resize(now_ms());
        threads.settle().await;
        assert_eq!(forks(&threads), [1, 0]);
    });
}
