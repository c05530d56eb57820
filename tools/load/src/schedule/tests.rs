use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn times(rate: Rate, arrival: Arrival, seconds: u64, thread: (usize, usize)) -> Vec<u64> {
    let mut schedule = Schedule::new(rate, arrival, seconds * SECOND_NS, thread, 42);
    let mut times = Vec::new();
    while let Some(ns) = schedule.next_ns() {
        times.push(ns);
        schedule.take();
    }
    times
}

#[test]
fn a_fixed_rate_is_due_at_even_distances() {
    let times = times(Rate::Fixed(1000.0), Arrival::Even, 2, (0, 1));
    assert_eq!(times.len(), 2000);
    assert_eq!((times[0], times[1], times[1999]), (0, 1_000_000, 1_999_000_000));
}

#[test]
fn no_error_adds_up_over_a_long_run() {
    let rate = 15_000.0;
    let profile = Profile::new(Rate::Fixed(rate), 0);
    let due = profile.ns_of(15_000.0 * 86_400.0).expect("a fixed rate has no end");
    assert!(due.abs_diff(86_400 * SECOND_NS) < 100, "{due}");
}

#[test]
fn threads_share_the_requests_without_gap_or_overlap() {
    let whole = times(Rate::Fixed(300.0), Arrival::Even, 1, (0, 1));
    let mut shared: Vec<u64> =
        (0..3).flat_map(|at| times(Rate::Fixed(300.0), Arrival::Even, 1, (at, 3))).collect();
    shared.sort_unstable();
    assert_eq!(shared, whole);
}

#[test]
fn a_step_has_one_rate_before_it_and_another_after() {
    let rate = Rate::Step { from: 1000.0, during: Duration::from_secs(2), to: 64.0 };
    let times = times(rate, Arrival::Even, 4, (0, 1));
    let before = times.iter().filter(|&&ns| ns < 2 * SECOND_NS).count();
    assert_eq!((before, times.len()), (2000, 2128));
    assert_eq!((times[2000], times[2001]), (2 * SECOND_NS, 2 * SECOND_NS + 15_625_000));
    let profile = Profile::new(rate, 4 * SECOND_NS);
    assert_eq!([1, 3].map(|seconds| profile.count_at(seconds * SECOND_NS)), [1000.0, 2064.0]);
}

#[test]
fn a_ramp_holds_the_area_below_its_line() {
    let times = times(Rate::Ramp { from: 0.0, to: 1000.0 }, Arrival::Even, 4, (0, 1));
    assert_eq!(times.len(), 2000);
    let first_half = times.iter().filter(|&&ns| ns < 2 * SECOND_NS).count();
    assert_eq!(first_half, 500);
}

#[test]
fn a_falling_ramp_ends() {
    let times = times(Rate::Ramp { from: 100.0, to: 0.0 }, Arrival::Even, 2, (0, 1));
    assert!((99..=100).contains(&times.len()), "{}", times.len());
    assert!(times.is_sorted());
}

#[test]
fn poisson_arrivals_have_the_rate_and_variance() {
    let times: Vec<u64> = (0..2)
        .flat_map(|at| {
            let rate = Rate::Fixed(5000.0);
            let mut schedule =
                Schedule::new(rate, Arrival::Poisson, 10 * SECOND_NS, (at, 2), at as u64);
            std::iter::from_fn(move || {
                let next = schedule.next_ns();
                schedule.take();
                next
            })
            .collect::<Vec<u64>>()
        })
        .collect();
    // 50,000 expected, with a deviation of √50,000 = 224.
    assert!((49_000..51_000).contains(&times.len()), "{}", times.len());
    let mut windows = vec![0_f64; 1000];
    times.iter().for_each(|&ns| windows[(ns / 10_000_000) as usize] += 1.0);
    let mean = windows.iter().sum::<f64>() / 1000.0;
    let variance = windows.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 999.0;
    // A Poisson process has as much variance as mean.
    assert!((0.8..1.25).contains(&(variance / mean)), "{variance} for {mean}");
}

#[test]
fn due_requests_that_are_not_taken_are_the_queue() {
    let mut schedule = Schedule::new(Rate::Fixed(1000.0), Arrival::Even, 2 * SECOND_NS, (0, 1), 0);
    assert_eq!(schedule.waiting(0), 1);
    schedule.take();
    assert_eq!(schedule.waiting(500_000), 0);
    assert_eq!(schedule.waiting(10_000_000), 10);
    assert_eq!(schedule.waiting(60 * SECOND_NS), 1999);
    assert_eq!(schedule.take_rest(), 1999);
    assert_eq!(schedule.waiting(60 * SECOND_NS), 0);
}
