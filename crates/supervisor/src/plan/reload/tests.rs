use super::*;
use proptest::prelude::*;

const PLAN: Plan =
    Plan { workers: 2, has_check: true, start_timeout_ms: 1_000, drain_timeout_ms: 500 };

fn begin(plan: Plan) -> Reload {
    let (reload, effects) = Reload::begin(plan, 0);
    assert_eq!(effects, [Effect::StartNew]);
    reload
}

fn checking() -> Reload {
    let mut reload = begin(PLAN);
    assert_eq!(reload.on(Event::Ready { workers: 1 }, 10), []);
    assert_eq!(reload.on(Event::Ready { workers: 2 }, 20), [Effect::SendCheck]);
    reload
}

fn draining() -> Reload {
    let mut reload = checking();
    let effects = reload.on(Event::CheckPassed, 30);
    assert_eq!(effects, [Effect::Swap, Effect::DrainOld { deadline_ms: 530 }]);
    reload
}

#[test]
fn a_reload_that_goes_well_swaps_and_drains() {
    let mut reload = draining();
    assert_eq!(reload.on(Event::Tick, 529), []);
    assert_eq!(reload.on(Event::OldGone, 529), [Effect::Finish]);
    assert_eq!(reload.phase(), &Phase::Done);
}

#[test]
fn without_a_check_request_ready_workers_are_enough() {
    let mut reload = begin(Plan { has_check: false, ..PLAN });
    let effects = reload.on(Event::Ready { workers: 2 }, 10);
    assert_eq!(effects, [Effect::Swap, Effect::DrainOld { deadline_ms: 510 }]);
}

#[test]
fn an_old_generation_that_does_not_end_is_killed_at_the_drain_deadline() {
    let mut reload = draining();
    assert_eq!(reload.on(Event::Tick, 530), [Effect::KillOld]);
    assert_eq!(reload.on(Event::Tick, 531), []);
    assert_eq!(reload.on(Event::OldGone, 540), [Effect::Finish]);
    assert_eq!(reload.phase(), &Phase::Done);
}

#[test]
fn a_kernel_that_does_not_end_a_process_does_not_hold_the_reload() {
    let mut reload = draining();
    assert_eq!(reload.on(Event::Tick, 530), [Effect::KillOld]);
    assert_eq!(reload.on(Event::Tick, 530 + END_GRACE_MS), [Effect::Finish]);
}

#[test]
fn whatever_fails_before_the_swap_is_undone_and_told() {
    let table = [
        (Event::StartFailed { message: "syntax error".into() }, "PHP did not start: syntax error"),
        (Event::NewDied { how: "signal 11".into() }, "the new processes died: signal 11"),
        (Event::CheckFailed { how: "status 500".into() }, "the check request failed: status 500"),
        (Event::Cancel, "it was cancelled"),
    ];
    for (event, told) in table {
        let mut reload = checking();
        assert_eq!(reload.on(event, 40), [Effect::DiscardNew, Effect::Finish]);
        let Phase::RolledBack(reason) = reload.phase() else { panic!("{told}") };
        assert_eq!(reason.to_string(), told);
    }
}

#[test]
fn a_slow_start_and_a_slow_check_are_undone_at_their_deadline() {
    let mut starting = begin(PLAN);
    assert_eq!(starting.on(Event::Ready { workers: 1 }, 999), []);
    assert_eq!(starting.on(Event::Tick, 1_000), [Effect::DiscardNew, Effect::Finish]);
    let reason = Reason::NotReady { ready: 1, wanted: 2 };
    assert_eq!(starting.phase(), &Phase::RolledBack(reason));

    let mut checking = checking();
    assert_eq!(checking.on(Event::Tick, 1_000), [Effect::DiscardNew, Effect::Finish]);
    assert_eq!(checking.phase(), &Phase::RolledBack(Reason::CheckTimedOut));
}

#[test]
fn after_the_swap_nothing_is_undone() {
    for event in [Event::Cancel, Event::NewDied { how: String::new() }, Event::Ready { workers: 0 }]
    {
        let mut reload = draining();
        assert_eq!(reload.on(event, 40), []);
        assert!(matches!(reload.phase(), Phase::Draining { .. }));
    }
}

#[test]
fn an_end_of_the_old_generation_before_the_swap_does_not_end_the_reload() {
    let mut reload = checking();
    assert_eq!(reload.on(Event::OldGone, 40), []);
    assert_eq!(reload.on(Event::CheckPassed, 50).first(), Some(&Effect::Swap));
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..5_usize).prop_map(|workers| Event::Ready { workers }),
        Just(Event::StartFailed { message: String::new() }),
        Just(Event::NewDied { how: String::new() }),
        Just(Event::CheckPassed),
        Just(Event::CheckFailed { how: String::new() }),
        Just(Event::OldGone),
        Just(Event::Cancel),
        Just(Event::Tick),
    ]
}

proptest! {
    #[test]
    fn a_reload_always_ends_and_exactly_one_generation_serves(
        has_check: bool,
        events in prop::collection::vec((any_event(), 0..700_u64), 0..30),
    ) {
        let (mut reload, mut done) = Reload::begin(Plan { has_check, ..PLAN }, 0);
        let mut now_ms = 0;
        for (event, pause_ms) in events {
            now_ms += pause_ms;
            done.extend(reload.on(event, now_ms));
        }
        while let Some(deadline_ms) = reload.next_deadline_ms() {
            now_ms = now_ms.max(deadline_ms);
            let before = reload.phase().clone();
            done.extend(reload.on(Event::Tick, now_ms));
            prop_assert_ne!(reload.phase(), &before, "a deadline must lead on");
        }
        let count = |wanted: &Effect| done.iter().filter(|effect| *effect == wanted).count();
        prop_assert!(reload.is_over());
        prop_assert_eq!(count(&Effect::Finish), 1);
        prop_assert_eq!(done.last(), Some(&Effect::Finish));
        prop_assert_eq!(count(&Effect::Swap) + count(&Effect::DiscardNew), 1);
        let swapped = *reload.phase() == Phase::Done;
        prop_assert_eq!(count(&Effect::Swap), usize::from(swapped));
        prop_assert!(swapped || count(&Effect::KillOld) == 0);
        prop_assert_eq!(reload.on(Event::Tick, u64::MAX), []);
    }
}
