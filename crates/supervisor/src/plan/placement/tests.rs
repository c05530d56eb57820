use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// 1,000 quick requests per second that use 10 % of a core.
fn quick() -> Interval {
    Interval { elapsed_ms: 100, requests: 100, longest_ms: 1, core_ns: Some(10 * MS) }
}

/// Runs so many intervals of 100 ms, and returns the time.
fn run(plan: &mut Plan, from_ms: u64, count: u64, interval: Interval) -> u64 {
    for at in 1..=count {
        plan.decide(from_ms + at * 100, &interval);
    }
    from_ms + count * 100
}

/// A plan that has placed workers just now.
fn placed() -> (Plan, u64) {
    let mut plan = Plan::default();
    let now_ms = run(&mut plan, 10_000, 5, quick());
    assert!(plan.is_placed());
    (plan, now_ms)
}

#[test]
fn workers_are_placed_after_a_calm_time() {
    let mut plan = Plan::default();
    let now_ms = run(&mut plan, 10_000, 4, quick());
    assert!(!plan.is_placed());
    run(&mut plan, now_ms, 1, quick());
    assert!(plan.is_placed());
}

#[test]
fn an_interval_permits_placing_and_staying_by_its_table() {
    let table = [
        ("quick", quick(), (true, true)),
        ("a few requests", Interval { requests: 5, ..quick() }, (true, true)),
        ("too few to place", Interval { requests: 4, ..quick() }, (false, true)),
        ("too few to stay", Interval { requests: 1, ..quick() }, (false, false)),
        ("none", Interval { requests: 0, longest_ms: 0, ..quick() }, (false, false)),
        ("a slower one", Interval { longest_ms: 2, ..quick() }, (false, true)),
        ("a long one", Interval { longest_ms: 3, ..quick() }, (false, false)),
        ("room", Interval { core_ns: Some(60 * MS), ..quick() }, (true, true)),
        ("little room", Interval { core_ns: Some(61 * MS), ..quick() }, (false, true)),
        ("a full core", Interval { core_ns: Some(76 * MS), ..quick() }, (false, false)),
        ("more than a core", Interval { core_ns: Some(u64::MAX), ..quick() }, (false, false)),
        ("an unknown core", Interval { core_ns: None, ..quick() }, (false, false)),
        ("no time", Interval { elapsed_ms: 0, ..quick() }, (false, false)),
    ];
    for (name, interval, expected) in table {
        let permits = (interval.permits_placing(), interval.permits_staying());
        assert_eq!(permits, expected, "{name}");
    }
}

#[test]
fn one_unsuitable_interval_begins_the_calm_time_again() {
    let mut plan = Plan::default();
    let now_ms = run(&mut plan, 10_000, 4, quick());
    let now_ms = run(&mut plan, now_ms, 1, Interval { longest_ms: 2, ..quick() });
    let now_ms = run(&mut plan, now_ms, 4, quick());
    assert!(!plan.is_placed());
    run(&mut plan, now_ms, 1, quick());
    assert!(plan.is_placed());
}

#[test]
fn the_calm_time_doubles_while_long_requests_end_placements_soon() {
    let (mut plan, mut now_ms) = placed();
    for calm_ms in [1_000, 2_000, 4_000, 8_000, 8_000] {
        plan.end(now_ms + 50);
        assert!(!plan.is_placed());
        let before_ms = run(&mut plan, now_ms + 50, calm_ms / 100 - 1, quick());
        assert!(!plan.is_placed(), "{calm_ms}");
        now_ms = run(&mut plan, before_ms, 1, quick());
        assert!(plan.is_placed(), "{calm_ms}");
    }
    let now_ms = run(&mut plan, now_ms, 80, quick());
    plan.end(now_ms);
    run(&mut plan, now_ms, 5, quick());
    assert!(plan.is_placed(), "a placement that has lasted is no mistake");
}

#[test]
fn a_pause_of_requests_is_no_mistake() {
    let (mut plan, now_ms) = placed();
    let now_ms = run(&mut plan, now_ms, 2, Interval { requests: 0, longest_ms: 0, ..quick() });
    assert!(!plan.is_placed());
    run(&mut plan, now_ms, 5, quick());
    assert!(plan.is_placed());
}

#[test]
fn a_full_core_ends_a_placement_and_is_a_mistake() {
    let (mut plan, now_ms) = placed();
    let now_ms = run(&mut plan, now_ms, 1, Interval { core_ns: Some(80 * MS), ..quick() });
    assert!(!plan.is_placed());
    let now_ms = run(&mut plan, now_ms, 9, quick());
    assert!(!plan.is_placed());
    run(&mut plan, now_ms, 1, quick());
    assert!(plan.is_placed());
}

#[test]
fn the_end_of_no_placement_changes_nothing_but_the_calm() {
    let mut plan = Plan::default();
    plan.end(1_000);
    assert_eq!(plan, Plan::default());
}

proptest! {
    #[test]
    fn a_long_request_each_second_leaves_little_time_placed(
        at in 0..10_u64, seconds in 20..60_u64,
    ) {
        let (mut plan, mut placed) = (Plan::default(), 0);
        for step in 0..seconds * 10 {
            let longest_ms = if step % 10 == at { 100 } else { 1 };
            plan.decide(step * 100, &Interval { longest_ms, ..quick() });
            placed += u64::from(plan.is_placed());
        }
        // Once for at most half a second.
        prop_assert!(placed <= 5, "{placed}");
    }
}
