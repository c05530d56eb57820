//! Rings that are not polled.

use super::*;
use outboard_reactor::{Bell, MemorySource};
use outboard_ring::spsc::Wake;

/// A pool of its own [`Rings`] and their poller, as the event loop has it.
fn polled_pool() -> (Rc<Pool>, impl MemorySource) {
    let pool = pool(1);
    let source = pool.core.active.rings().source();
    (pool, source)
}

#[test]
fn an_idle_worker_is_polled_again_when_it_rings() {
    in_loop(async {
        let (pool, mut rings) = polled_pool();
        let mut worker = StandIn::join(&pool, 1);
        assert_eq!(rings.prepare_sleep(), u64::MAX);
        rings.cancel_sleep();
        assert_eq!(pool.core.active.len(), 0);
        // A malformed frame ends the worker once it is read.
        assert!(worker.channel.push(FrameKind::Log, Tag::default(), &[]).unwrap());
        assert_eq!(worker.channel.publish(), Wake::Needed, "its doorbell stays armed");
        assert!(!rings.look());
        assert_eq!(worker.state(&pool), Some(State::Idle));
        pool.core.bell(0).ring();
        rings.look();
        assert_eq!(worker.state(&pool), Some(State::Killing));
    });
}

#[test]
fn a_request_has_its_worker_polled() {
    in_loop(async {
        let (pool, mut rings) = polled_pool();
        let mut worker = StandIn::join(&pool, 1);
        assert_eq!(rings.prepare_sleep(), u64::MAX);
        rings.cancel_sleep();
        let exchange = submit(&pool);
        let tag = worker.start_next();
        assert_eq!(rings.prepare_sleep(), u64::MAX);
        rings.cancel_sleep();
        assert_eq!(pool.core.active.len(), 1, "its request runs");
        worker.respond(tag, b"x");
        assert_eq!(rings.prepare_sleep(), 0);
        rings.cancel_sleep();
        assert!(rings.look());
        assert_eq!(end_of(&exchange), COMPLETE);
        rings.look();
        assert_eq!((rings.prepare_sleep(), pool.core.active.len()), (u64::MAX, 0));
    });
}

#[test]
fn a_worker_that_exits_is_not_polled() {
    in_loop(async {
        let (pool, mut rings) = polled_pool();
        let _worker = StandIn::join(&pool, 1);
        assert_eq!(pool.core.active.len(), 1);
        reap(&pool, 1);
        assert_eq!(pool.core.active.len(), 0);
        rings.look();
        assert_eq!(rings.prepare_sleep(), u64::MAX);
        let _successor = StandIn::join(&pool, 2);
        assert_eq!(pool.core.active.len(), 1, "in the same slot");
    });
}
