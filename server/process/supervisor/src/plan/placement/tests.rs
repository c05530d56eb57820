use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// 1,000 quick requests per second that use 10 % of a core.
fn quick() -> Interval {
    using(6 * MS, 4 * MS)
}

/// The same rate, with these times of the workers and the gateway.
fn using(workers_ns: u64, gateway_ns: u64) -> Interval {
    Interval { elapsed_ms: 100, requests: 100, load: Some(Load { workers_ns, gateway_ns }) }
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
        ("a few requests", Interval { requests: 5, ..using(2 * MS, 4 * MS) }, (true, true)),
        ("too few to place", Interval { requests: 4, ..quick() }, (false, true)),
        ("too few to stay", Interval { requests: 1, ..quick() }, (false, false)),
        ("none", Interval { requests: 0, ..quick() }, (false, false)),
        ("requests of half a millisecond", using(50 * MS, 4 * MS), (true, true)),
        ("longer ones", using(51 * MS, 4 * MS), (false, true)),
        ("room", using(20 * MS, 40 * MS), (true, true)),
        ("little room", using(20 * MS, 41 * MS), (false, true)),
        ("a full core", using(20 * MS, 56 * MS), (false, false)),
        ("more than a core", using(u64::MAX, u64::MAX), (false, false)),
        ("an unknown core", Interval { load: None, ..quick() }, (false, false)),
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
    let now_ms = run(&mut plan, now_ms, 1, using(60 * MS, 0));
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
    let now_ms = run(&mut plan, now_ms, 2, Interval { requests: 0, ..quick() });
    assert!(!plan.is_placed());
    run(&mut plan, now_ms, 5, quick());
    assert!(plan.is_placed());
}

#[test]
fn a_full_core_ends_a_placement_and_is_a_mistake() {
    let (mut plan, now_ms) = placed();
    let now_ms = run(&mut plan, now_ms, 1, using(40 * MS, 40 * MS));
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
    fn a_long_computation_each_second_leaves_little_time_placed(
        at in 0..10_u64, seconds in 20..60_u64,
    ) {
        let (mut plan, mut placed) = (Plan::default(), 0);
        for step in 0..seconds * 10 {
            // Seen at once while workers are placed, and otherwise hardly noticed.
            if step % 10 == at {
                plan.end(step * 100);
            }
            plan.decide(step * 100, &quick());
            placed += u64::from(plan.is_placed());
        }
        // Each placement lasts at most a second, and the time between two grows to eight.
        prop_assert!(placed <= 20 + seconds * 10 / 9, "{placed}");
    }
}
