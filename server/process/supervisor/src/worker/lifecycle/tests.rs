use super::*;
use proptest::prelude::*;

fn idle() -> Lifecycle {
    let mut life = Lifecycle::new(0);
    life.forked();
    assert_eq!(life.ready(1), Transition::Applied);
    life
}

fn busy() -> Lifecycle {
    let mut life = idle();
    assert_eq!(life.begin(), Transition::Applied);
    life
}

#[test]
fn moves_lead_forwards_except_from_busy_to_idle() {
    for from in State::ALL {
        for to in State::ALL {
            if from.may_become(to) {
                assert!(to > from || (from, to) == (State::Busy, State::Idle), "{from} → {to}");
            }
        }
        assert!(from == State::Gone || from.may_become(State::Gone), "{from} must be able to end");
    }
}

#[test]
fn a_whole_life_counts_its_requests() {
    let mut life = idle();
    assert_eq!(life.idle_ms(6), Some(5));
    for begin_ms in [10, 20, 30] {
        assert_eq!(life.begin(), Transition::Applied);
        assert_eq!((life.requests(), life.idle_ms(begin_ms)), (1, None));
        assert_eq!(life.finished(begin_ms + 5, false), RequestEnd::Free);
    }
    assert_eq!(life.served(), 3);
    assert_eq!(life.drain(1_000), Stopping::Now);
    assert_eq!(life.exited(), ExitKind::Expected);
    assert_eq!(life.exited(), ExitKind::Again);
}

#[test]
fn ready_before_the_report_of_the_fork_is_not_undone_by_it() {
    let mut life = Lifecycle::new(0);
    assert_eq!(life.ready(1), Transition::Applied);
    life.forked();
    assert_eq!(life.state(), State::Idle);
}

#[test]
fn a_second_ready_changes_nothing() {
    let mut life = busy();
    assert_eq!(life.ready(50), Transition::Ignored);
    assert_eq!(life.state(), State::Busy);
}

#[test]
fn only_a_ready_worker_is_given_requests() {
    assert_eq!(Lifecycle::new(0).begin(), Transition::Ignored);
    let mut life = busy();
    assert_eq!(life.begin(), Transition::Applied);
    assert_eq!((life.state(), life.requests()), (State::Busy, 2));
    assert_eq!(life.drain(500), Stopping::AfterRequest);
    assert_eq!(life.begin(), Transition::Ignored);
}

#[test]
fn a_worker_is_idle_when_the_last_of_its_requests_is_over() {
    let mut life = busy();
    assert_eq!(life.begin(), Transition::Applied);
    assert_eq!(life.finished(20, false), RequestEnd::Free);
    assert_eq!((life.state(), life.idle_ms(25)), (State::Busy, None));
    assert_eq!(life.withdrawn(30), RequestEnd::Free);
    assert_eq!((life.idle_ms(35), life.served()), (Some(5), 1));
}

#[test]
fn a_leaving_worker_finishes_its_other_requests() {
    let mut life = busy();
    assert_eq!(life.begin(), Transition::Applied);
    assert_eq!(life.finished(20, true), RequestEnd::Leaving);
    assert_eq!((life.state(), life.drain_deadline_ms()), (State::Draining, None));
    assert_eq!(life.finished(90, false), RequestEnd::Leaving);
    assert_eq!(life.drain_deadline_ms(), Some(90 + LEAVING_GRACE_MS));
}

#[test]
fn a_draining_worker_is_stopped_after_its_last_request() {
    let mut life = busy();
    assert_eq!(life.begin(), Transition::Applied);
    assert_eq!(life.drain(500), Stopping::AfterRequest);
    assert_eq!(life.finished(20, false), RequestEnd::Leaving);
    assert_eq!(life.finished(30, false), RequestEnd::Stop);
    assert_eq!(life.drain_deadline_ms(), Some(500));
}

#[test]
fn a_busy_worker_drains_after_its_request() {
    let mut life = busy();
    assert_eq!(life.drain(500), Stopping::AfterRequest);
    assert_eq!((life.state(), life.drain_deadline_ms()), (State::Draining, Some(500)));
    assert_eq!(life.drain(900), Stopping::Already);
    assert_eq!(life.drain_deadline_ms(), Some(500));
    assert_eq!(life.finished(20, false), RequestEnd::Stop);
    assert_eq!(life.exited(), ExitKind::Expected);
}

#[test]
fn a_leaving_worker_has_a_deadline() {
    let mut life = busy();
    assert_eq!(life.finished(20, true), RequestEnd::Leaving);
    assert_eq!(life.state(), State::Draining);
    assert_eq!(life.drain_deadline_ms(), Some(20 + LEAVING_GRACE_MS));
}

#[test]
fn an_exit_is_classified_by_its_requests() {
    let mut forking = Lifecycle::new(0);
    assert_eq!(forking.exited(), ExitKind::WhileStarting);
    let mut booting = Lifecycle::new(0);
    booting.forked();
    assert_eq!(booting.exited(), ExitKind::WhileStarting);
    assert_eq!(idle().exited(), ExitKind::WhileIdle);
    assert_eq!(busy().exited(), ExitKind::WhileServing);
    let mut killed = busy();
    assert_eq!(killed.kill(), Transition::Applied);
    assert_eq!(killed.kill(), Transition::Ignored);
    assert_eq!(killed.exited(), ExitKind::ExpectedWithRequests);
}

#[test]
fn an_end_without_a_request_is_distinguished() {
    assert_eq!(idle().finished(5, false), RequestEnd::HadNone);
    let mut life = busy();
    assert_eq!(life.finished(11, false), RequestEnd::Free);
    assert_eq!(life.finished(12, false), RequestEnd::HadNone);
    assert_eq!(life.served(), 1);
}

proptest! {
    #[test]
    fn any_events_lead_to_legal_states_and_request_counts(
        events in prop::collection::vec(0..9_u8, 0..40)
    ) {
        let mut life = Lifecycle::new(0);
        for (now_ms, event) in events.into_iter().enumerate() {
            let before = life.clone();
            let now_ms = now_ms as u64;
            let _ = match event {
                0 => {
                    life.forked();
                    Transition::Applied
                }
                1 => life.ready(now_ms),
                2 => life.begin(),
                3 | 4 => {
                    let _ = life.finished(now_ms, event == 4);
                    Transition::Applied
                }
                5 => {
                    let _ = life.drain(now_ms);
                    Transition::Applied
                }
                6 => life.kill(),
                7 => {
                    let _ = life.withdrawn(now_ms);
                    Transition::Applied
                }
                _ => {
                    let _ = life.exited();
                    Transition::Applied
                }
            };
            let after = life.state();
            prop_assert!(after == before.state() || before.state().may_become(after));
            match after {
                State::Busy => prop_assert!(life.requests() > 0),
                State::Draining | State::Killing => {}
                _ => prop_assert_eq!(life.requests(), 0),
            }
            prop_assert!(life.served() >= before.served());
        }
    }
}

#[test]
fn an_announced_death_is_no_ordered_exit() {
    let mut serving = busy();
    assert_eq!(serving.dying(30), Transition::Applied);
    assert_eq!(serving.state(), State::Draining);
    assert_eq!(serving.drain_deadline_ms(), Some(30 + LEAVING_GRACE_MS));
    assert_eq!(serving.dying(40), Transition::Ignored);
    assert_eq!(serving.exited(), ExitKind::WhileServing);
    let mut resting = idle();
    assert_eq!(resting.dying(30), Transition::Applied);
    assert_eq!(resting.exited(), ExitKind::WhileIdle);
    let mut starting = Lifecycle::new(0);
    assert_eq!(starting.dying(30), Transition::Applied);
    assert_eq!(starting.exited(), ExitKind::WhileStarting);
}

#[test]
fn an_announcement_changes_no_ordered_exit() {
    let mut draining = busy();
    assert_eq!(draining.drain(500), Stopping::AfterRequest);
    assert_eq!(draining.dying(30), Transition::Ignored);
    assert_eq!(draining.exited(), ExitKind::ExpectedWithRequests);
    let mut killed = busy();
    assert_eq!(killed.dying(30), Transition::Applied);
    assert_eq!(killed.kill(), Transition::Applied);
    assert_eq!(killed.exited(), ExitKind::ExpectedWithRequests);
}
