//! What the pool knows of direct connections: their requests are recorded together, and a worker with one of them has no
//! room.

use super::direct::{direct_with, event};
use super::*;
use outboard_reactor::{now_ms, sleep, spawn};
use std::future::poll_fn;
use std::task::Poll;

/// Waits until the task is woken, though there are events already; the milliseconds.
async fn until_woken() -> u64 {
    let (begun_ms, mut next) = (now_ms(), Poll::Pending);
    poll_fn(|_| std::mem::replace(&mut next, Poll::Ready(()))).await;
    now_ms() - begun_ms
}

#[test]
fn answered_requests_wait_for_their_accounts_until_they_are_many() {
    in_loop(async {
        let mut direct = direct_with(1);
        let (mut parked, mut tag) = direct.park();
        let pool = direct.pool.clone();
        spawn(async move {
            loop {
                sleep(20).await;
                poll(&pool);
            }
        });
        for (count, at_once) in [(2, false), (32, true), (1, false)] {
            for _ in 0..count {
                tag = direct.take(tag);
                assert!(direct.answer(tag));
            }
            assert_eq!(until_woken().await < 150, at_once, "{count} requests");
            for _ in 0..count {
                assert!(matches!(event(&mut parked), DirectEvent::Answered { .. }));
            }
            assert!(parked.poll_event().is_pending());
        }
    });
}

#[test]
fn a_worker_whose_response_the_gateway_sends_has_no_room() {
    in_loop(async {
        let mut direct = direct_with(1);
        let (_parked, tag) = direct.park();
        let tag = direct.take(tag);
        direct.worker.channel.pass_on(tag);
        direct.worker.send(FrameKind::Head, tag, b"head");
        poll(&direct.pool);
        assert_eq!(direct.pool.core.members.borrow().roster.least_loaded(), None);
    });
}

/// Its connection comes back, and its request stays.
#[test]
fn a_worker_that_runs_a_request_of_a_connection_has_no_room() {
    in_loop(async {
        let mut direct = direct_with(1);
        let (mut parked, tag) = direct.park();
        direct.take(tag);
        poll(&direct.pool);
        parked.take_back();
        assert!(matches!(event(&mut parked), DirectEvent::Adopted { .. }));
        assert_eq!(direct.pool.core.members.borrow().roster.least_loaded(), None);
    });
}
