use super::*;
use proptest::prelude::*;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn sizes() -> Sizes {
    Sizes {
        min: None,
        max: None,
        spare: 1,
        cores: 4,
        memory_budget_bytes: GIB,
        worker_bytes: 32 * MIB,
    }
}

fn bounds(min: usize, max: usize) -> Bounds {
    Bounds::resolve(Sizes { min: Some(min), max: Some(max), ..sizes() })
}

/// Four cores, all four workers busy, requests wait long enough.
fn waiting() -> PoolView {
    PoolView {
        now_ms: 10_000,
        busy: 4,
        queue_length: 10,
        oldest_queued_ms: 8,
        oldest_busy_ms: 30,
        cpu_busy_percent: Some(20),
        ..PoolView::default()
    }
}

#[test]
fn bounds_are_found_by_cores_and_memory_unless_written() {
    let table = [
        // min, max, cores, budget, worker → min, max
        (None, None, 4, GIB, 32 * MIB, (4, 32)),
        (None, None, 1, GIB, 32 * MIB, (2, 32)),
        (None, None, 4, 64 * MIB, 32 * MIB, (4, 8)),
        (None, None, 4, 100 * GIB, MIB, (4, 512)),
        (None, None, 4, GIB, 0, (4, 512)),
        (None, Some(3), 4, GIB, MIB, (3, 3)),
        (None, Some(1), 4, GIB, MIB, (1, 1)),
        (Some(0), None, 4, GIB, 32 * MIB, (1, 32)),
        (Some(40), None, 4, GIB, 32 * MIB, (40, 40)),
        (Some(5), Some(5), 4, 0, MIB, (5, 5)),
        (None, None, 300, GIB, 32 * MIB, (300, 512)),
    ];
    for (min, max, cores, memory_budget_bytes, worker_bytes, expected) in table {
        let given = Sizes { min, max, cores, memory_budget_bytes, worker_bytes, spare: 1 };
        let bounds = Bounds::resolve(given);
        assert_eq!((bounds.min(), bounds.max()), expected, "{given:?}");
    }
}

#[test]
fn decisions_follow_the_table() {
    use Decision::{Grow, Hold, Shrink};
    let calm = PoolView { now_ms: 10_000, idle: 4, ..PoolView::default() };
    let saturated = PoolView { cpu_busy_percent: Some(95), ..waiting() };
    let table = [
        ("the start", PoolView::default(), Grow(2, Reason::BelowMinimum)),
        ("nothing to do", calm, Hold(Reason::Enough)),
        ("idle processors", waiting(), Grow(4, Reason::RequestsWait)),
        (
            "no sample yet",
            PoolView { cpu_busy_percent: None, ..waiting() },
            Hold(Reason::Measuring),
        ),
        (
            "no sample yet, and all sleep",
            PoolView { cpu_busy_percent: None, sleeping: Some(4), ..waiting() },
            Grow(4, Reason::RunningBlocked),
        ),
        (
            "a wait that is tolerated",
            PoolView { oldest_queued_ms: 4, ..waiting() },
            Hold(Reason::Enough),
        ),
        (
            "one waits, one comes",
            PoolView { queue_length: 1, ..waiting() },
            Grow(1, Reason::RequestsWait),
        ),
        (
            "those who wait are provided for",
            PoolView { queue_length: 2, booting: 2, ..waiting() },
            Hold(Reason::Starting),
        ),
        (
            "the last growth was just now",
            PoolView { last_grow_ms: Some(9_951), ..waiting() },
            Hold(Reason::JustGrown),
        ),
        (
            "the last growth has shown",
            PoolView { last_grow_ms: Some(9_950), ..waiting() },
            Grow(4, Reason::RequestsWait),
        ),
        (
            "the last worker that there may be",
            PoolView { busy: 19, queue_length: 500, ..waiting() },
            Grow(1, Reason::RequestsWait),
        ),
        ("the maximum", PoolView { busy: 20, ..waiting() }, Hold(Reason::AtMaximum)),
        ("computing on all cores", saturated, Hold(Reason::ProcessorsBusy)),
        (
            "computing on fewer workers than cores",
            PoolView { busy: 3, ..saturated },
            Grow(1, Reason::RunningBlocked),
        ),
        (
            "old requests on a saturated machine",
            PoolView { oldest_busy_ms: 500, ..saturated },
            Grow(4, Reason::RunningBlocked),
        ),
        (
            "old requests that are known to compute",
            PoolView { oldest_busy_ms: 500, sleeping: Some(0), ..saturated },
            Hold(Reason::ProcessorsBusy),
        ),
        (
            "three sleep, one computes",
            PoolView { sleeping: Some(3), ..saturated },
            Grow(3, Reason::RunningBlocked),
        ),
        (
            "idle, but not for long",
            PoolView { idle: 8, idle_long: 0, ..calm },
            Hold(Reason::Enough),
        ),
        ("long idle", PoolView { idle: 8, idle_long: 7, ..calm }, Shrink(1, Reason::LongIdle)),
        (
            "many long idle go in groups",
            PoolView { idle: 20, idle_long: 19, ..calm },
            Shrink(2, Reason::LongIdle),
        ),
        (
            "a group has just gone",
            PoolView { idle: 8, idle_long: 7, last_shrink_ms: Some(9_500), ..calm },
            Hold(Reason::JustShrunk),
        ),
        ("the minimum stays", PoolView { idle: 2, idle_long: 2, ..calm }, Hold(Reason::Enough)),
        (
            "a warm spare stays beside the busy",
            PoolView { idle: 1, idle_long: 1, busy: 5, ..calm },
            Hold(Reason::Enough),
        ),
        ("memory grew", PoolView { idle: 5, busy: 18, ..calm }, Shrink(3, Reason::AboveMaximum)),
        (
            "memory grew and all are busy",
            PoolView { busy: 23, ..waiting() },
            Hold(Reason::AtMaximum),
        ),
    ];
    for (name, view, expected) in table {
        assert_eq!(decide(&bounds(2, 20), &view), expected, "{name}");
    }
}

#[test]
fn a_decision_reads_as_a_sentence() {
    let decision = decide(&bounds(2, 20), &waiting());
    assert_eq!(decision.to_string(), "grows by 4: requests wait and processors are idle");
    assert_eq!(decision.reason(), Reason::RequestsWait);
}

#[test]
fn a_flood_of_sleeping_requests_is_met_within_a_second() {
    let bounds = bounds(2, 128);
    let (mut busy, mut last_grow_ms, mut now_ms) = (2, None, 0);
    while busy < 100 {
        let view = PoolView { now_ms, busy, queue_length: 100 - busy, last_grow_ms, ..waiting() };
        if let Decision::Grow(count, _) = decide(&bounds, &view) {
            busy += count;
            last_grow_ms = Some(now_ms);
        }
        now_ms += 20;
        assert!(now_ms <= 1_000, "{busy} workers after a second");
    }
}

fn any_view() -> impl Strategy<Value = PoolView> {
    let count = || 0..600_usize;
    let age = || prop_oneof![0..20_u64, 0..2_000_u64];
    let sample = prop::option::of(0..=100_u8);
    let change = || prop::option::of(0..20_000_u64);
    (
        (count(), count(), count(), count(), prop::option::of(count())),
        (count(), age(), age(), sample, change(), change()),
    )
        .prop_map(|((idle, idle_long, busy, booting, sleeping), rest)| {
            let (queue_length, queued_ms, busy_ms, cpu_busy_percent, grow, shrink) = rest;
            PoolView {
                now_ms: 20_000,
                idle,
                idle_long: idle_long.min(idle),
                busy,
                sleeping,
                booting,
                queue_length,
                oldest_queued_ms: queued_ms,
                oldest_busy_ms: busy_ms,
                cpu_busy_percent,
                last_grow_ms: grow,
                last_shrink_ms: shrink,
            }
        })
}

fn any_bounds() -> impl Strategy<Value = Bounds> {
    (prop::option::of(0..100_usize), prop::option::of(0..600_usize), 0..5_usize, 0..80_usize)
        .prop_map(|(min, max, spare, cores)| {
            Bounds::resolve(Sizes { min, max, spare, cores, ..sizes() })
        })
}

proptest! {
    #[test]
    fn no_decision_leads_out_of_the_bounds(bounds in any_bounds(), view in any_view()) {
        prop_assert!(1 <= bounds.min() && bounds.min() <= bounds.max());
        match decide(&bounds, &view) {
            Decision::Grow(count, _) => {
                prop_assert!(count > 0 && view.total() + count <= bounds.max());
            }
            Decision::Shrink(count, _) => {
                prop_assert!(count > 0 && count <= view.idle);
                prop_assert!(view.total() - count >= bounds.min());
            }
            Decision::Hold(_) => {
                prop_assert!(view.total() >= bounds.min());
            }
        }
    }

    #[test]
    fn a_saturated_machine_gets_one_computing_worker_per_core(
        bounds in any_bounds(), view in any_view()
    ) {
        let view = PoolView { cpu_busy_percent: Some(100), sleeping: Some(0), ..view };
        if let Decision::Grow(count, reason) = decide(&bounds, &view)
            && reason != Reason::BelowMinimum
        {
            prop_assert!(view.total() + count <= bounds.cores);
        }
    }

    #[test]
    fn a_calm_pool_settles_at_its_minimum_or_one_spare_worker(
        bounds in any_bounds(), view in any_view()
    ) {
        let mut view = PoolView { queue_length: 0, booting: 0, ..view };
        for _ in 0..2_000 {
            view.idle_long = view.idle;
            view.now_ms += SHRINK_PAUSE_MS;
            match decide(&bounds, &view) {
                Decision::Grow(count, _) => view.idle += count,
                Decision::Shrink(count, _) => {
                    view.idle -= count;
                    view.last_shrink_ms = Some(view.now_ms);
                }
                Decision::Hold(_) => break,
            }
        }
        let floor = bounds.min().max(view.busy + bounds.spare);
        prop_assert!(view.total() <= floor.max(bounds.min()), "{:?} in {:?}", view, bounds);
    }
}
