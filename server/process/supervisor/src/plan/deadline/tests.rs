use super::*;
use proptest::prelude::*;

fn running(deadline_ms: Option<u64>, drain_deadline_ms: Option<u64>) -> Bounds {
    Bounds::Running { deadline_ms, drain_deadline_ms }
}

fn at(now_ms: u64, bounds: Bounds, stage: Stage, has_backtrace: bool) -> Step {
    step(now_ms, &Watch { bounds, stage, has_backtrace, can_cancel: false })
}

#[test]
fn the_stages_come_in_order() {
    let bounds = running(Some(1_000), None);
    let (asked, again) =
        (Stage::Signalled { signalled_ms: 1_000 }, Stage::SignalledAgain { signalled_ms: 1_000 });
    let table = [
        (999, Stage::InTime, false, Step::Wait { until_ms: Some(1_000) }),
        (1_000, Stage::InTime, false, Step::RespondAndSignal(Cause::Request)),
        (1_049, asked, false, Step::Wait { until_ms: Some(1_050) }),
        (1_050, asked, false, Step::SignalAgain),
        (1_249, again, false, Step::Wait { until_ms: Some(1_250) }),
        (1_250, again, false, Step::Kill(Cause::Request)),
        (1_001, asked, true, Step::Kill(Cause::Request)),
        (1_051, again, true, Step::Kill(Cause::Request)),
        (9_999, Stage::Killed, true, Step::Wait { until_ms: None }),
    ];
    for (now_ms, stage, has_backtrace, expected) in table {
        assert_eq!(at(now_ms, bounds, stage, has_backtrace), expected, "{now_ms} {stage:?}");
    }
}

#[test]
fn a_worker_with_other_requests_is_cancelled_before_killed() {
    let bounds = running(Some(1_000), None);
    let cancelled = Stage::Cancelled { cancelled_ms: 1_250 };
    let table = [
        (1_000, Stage::InTime, false, Step::RespondAndSignal(Cause::Request)),
        (1_020, Stage::Signalled { signalled_ms: 1_000 }, true, Step::Cancel),
        (1_250, Stage::SignalledAgain { signalled_ms: 1_000 }, false, Step::Cancel),
        (1_499, cancelled, true, Step::Wait { until_ms: Some(1_500) }),
        (1_500, cancelled, true, Step::Kill(Cause::Request)),
    ];
    for (now_ms, stage, has_backtrace, expected) in table {
        let watch = Watch { bounds, stage, has_backtrace, can_cancel: true };
        assert_eq!(step(now_ms, &watch), expected, "{now_ms} {stage:?}");
    }
    assert_eq!(Step::Cancel.next_stage(Stage::Signalled { signalled_ms: 1_000 }, 1_250), cancelled);
}

#[test]
fn a_late_tick_still_answers_and_asks_before_it_kills() {
    let bounds = running(Some(1_000), None);
    let step = at(5_000, bounds, Stage::InTime, false);
    assert_eq!(step, Step::RespondAndSignal(Cause::Request));
    let stage = step.next_stage(Stage::InTime, 5_000);
    assert_eq!(at(5_010, bounds, stage, false), Step::Wait { until_ms: Some(5_050) });
}

#[test]
fn a_request_without_a_deadline_runs_until_the_drain_deadline() {
    assert_eq!(
        at(u64::MAX, running(None, None), Stage::InTime, false),
        Step::Wait { until_ms: None }
    );
    let draining = running(None, Some(700));
    assert_eq!(at(700, draining, Stage::InTime, false), Step::RespondAndSignal(Cause::Drain));
}

#[test]
fn the_earlier_bound_is_the_one_that_counts() {
    let request_first = running(Some(500), Some(700));
    assert_eq!(
        at(600, request_first, Stage::InTime, false),
        Step::RespondAndSignal(Cause::Request)
    );
    let drain_first = running(Some(900), Some(700));
    assert_eq!(at(800, drain_first, Stage::InTime, false), Step::RespondAndSignal(Cause::Drain));
}

#[test]
fn a_worker_without_a_request_is_killed_at_once() {
    let starting = Bounds::Starting { ready_by_ms: 30 };
    assert_eq!(at(29, starting, Stage::InTime, false), Step::Wait { until_ms: Some(30) });
    assert_eq!(at(30, starting, Stage::InTime, false), Step::Kill(Cause::Starting));
    let leaving = Bounds::Leaving { drain_deadline_ms: 40 };
    assert_eq!(at(40, leaving, Stage::InTime, false), Step::Kill(Cause::Leaving));
}

proptest! {
    #[test]
    fn every_bounded_worker_is_killed_in_time_by_steps_in_order(
        deadline_ms in 0..10_000_u64,
        tick_ms in 1..500_u64,
        backtrace_after_ms in prop::option::of(0..200_u64),
    ) {
        let bounds = running(Some(deadline_ms), None);
        let (mut stage, mut now_ms, mut answers) = (Stage::InTime, 0, 0);
        while stage != Stage::Killed {
            let signalled_ms = match stage {
                Stage::Signalled { signalled_ms } | Stage::SignalledAgain { signalled_ms } => Some(signalled_ms),
                _ => None,
            };
            let has_backtrace = signalled_ms.zip(backtrace_after_ms)
                .is_some_and(|(signalled_ms, after_ms)| now_ms >= signalled_ms + after_ms);
            let step = at(now_ms, bounds, stage, has_backtrace);
            if let Step::Wait { until_ms } = step {
                prop_assert!(until_ms.is_some_and(|until_ms| until_ms > now_ms));
            }
            prop_assert!(!matches!(step, Step::Kill(_)) || answers == 1);
            answers += usize::from(matches!(step, Step::RespondAndSignal(_)));
            stage = step.next_stage(stage, now_ms);
            now_ms += tick_ms;
        }
        prop_assert!(now_ms <= deadline_ms + KILL_AFTER_MS + 4 * tick_ms);
    }
}
