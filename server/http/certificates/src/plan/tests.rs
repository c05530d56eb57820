use super::limits::{DAY, FAILED_CHECKS, HOUR, NAME_PERIOD, ORDERS_PERIOD};
use super::*;
use proptest::prelude::*;

const LIMITS: Limits = Limits { orders: 300, orders_per_name: 5 };
const NOW: Time = 1_800_000_000;
const NAME: &str = "example.org";

fn step(now_s: Time, certificate: Option<&Validity>, record: &NameRecord) -> Step {
    next_step(now_s, NAME, certificate.map(|one| (one, None)), record, [0], LIMITS)
}

fn validity(days: u64) -> Validity {
    Validity { not_before_s: NOW, not_after_s: NOW + days * DAY }
}

#[test]
fn a_name_without_a_certificate_gets_one_at_once() {
    assert_eq!(step(NOW, None, &NameRecord::default()), Step::Obtain);
}

#[test]
fn a_certificate_is_renewed_when_a_third_of_its_time_is_left() {
    let certificate = validity(90);
    let Step::Wait(at_s) = step(NOW, Some(&certificate), &NameRecord::default()) else {
        panic!("renewed at once");
    };
    assert!((58 * DAY..=60 * DAY).contains(&(at_s - NOW)), "{}", (at_s - NOW) / DAY);
    assert_eq!(step(at_s, Some(&certificate), &NameRecord::default()), Step::Obtain);
    let short = due_s(NAME, &validity(6), None) - NOW;
    assert!((2 * DAY..=3 * DAY).contains(&short), "{short}");
}

#[test]
fn the_window_of_the_authority_decides() {
    let certificate = validity(90);
    let window = Window::new(NOW, (NOW + DAY, NOW + 3 * DAY), None);
    let at_s = due_s(NAME, &certificate, Some(&window));
    assert!((NOW + DAY..NOW + 3 * DAY).contains(&at_s));
    // A revocation moves it into the past.
    let past = Window::new(NOW, (NOW - 2 * DAY, NOW - DAY), None);
    assert!(due_s(NAME, &certificate, Some(&past)) < NOW);
    // An authority cannot have the certificate expire.
    let beyond = Window::new(NOW, (NOW + 900 * DAY, NOW + 901 * DAY), None);
    assert!(due_s(NAME, &certificate, Some(&beyond)) < certificate.not_after_s);
    let reversed = Window::new(NOW, (NOW + 3 * DAY, NOW + DAY), Some(u64::MAX));
    assert_eq!(due_s(NAME, &certificate, Some(&reversed)), NOW + 3 * DAY);
    assert!(!reversed.is_old(NOW) && reversed.is_old(NOW + DAY) && reversed.is_old(NOW - DAY));
}

#[test]
fn pauses_after_failures_grow_to_a_day() {
    let mut record = NameRecord::default();
    let mut now_s = NOW;
    let mut pauses = Vec::new();
    for _ in 0..10 {
        record.failed(now_s, "no".to_owned());
        let Step::Wait(at_s) = step(now_s, None, &record) else { panic!("no pause") };
        pauses.push(at_s - now_s);
        now_s = at_s;
    }
    assert!(pauses.is_sorted() && pauses[0] >= 45, "{pauses:?}");
    assert!((18 * HOUR..=30 * HOUR).contains(&pauses[9]), "{pauses:?}");
    record.issued("https://authority.test");
    assert_eq!(step(now_s, None, &record), Step::Obtain);
}

#[test]
fn five_failed_checks_an_hour_are_the_most() {
    let mut record = NameRecord::default();
    (0..FAILED_CHECKS as u64).for_each(|at| record.check_failed(NOW + at));
    assert_eq!(step(NOW + 10, None, &record), Step::Wait(NOW + HOUR));
    record.correct(NOW + HOUR);
    assert_eq!(step(NOW + HOUR, None, &record), Step::Obtain);
}

#[test]
fn an_open_order_is_completed_even_at_the_limit() {
    let mut record = NameRecord::default();
    (0..5).for_each(|_| record.ordered(NOW));
    assert_eq!(step(NOW, None, &record), Step::Wait(NOW + NAME_PERIOD));
    record.order = Some(OpenOrder { authority: "a".into(), url: "u".into(), key: "k".into() });
    assert_eq!(step(NOW, None, &record), Step::Obtain);
}

#[test]
fn a_clock_from_the_future_suspends_no_name_for_longer() {
    let mut record = NameRecord::default();
    let future = NOW + 5000 * DAY;
    (0..5).for_each(|_| record.ordered(future));
    record.failed(future, "no".to_owned());
    record.pause(future, "a", 900 * DAY);
    record.correct(NOW);
    assert_eq!(step(NOW, None, &record), Step::Wait(NOW + NAME_PERIOD));
    assert!(record.paused_s("a") <= NOW + 7 * DAY);
    let mut authority = AuthorityRecord::default();
    (0..300).for_each(|_| authority.ordered(future));
    authority.failed(future);
    authority.pause(future, 900 * DAY);
    authority.correct(NOW);
    assert!(authority.usable_s("a", LIMITS) <= NOW + ORDERS_PERIOD);
}

#[test]
fn an_authority_that_failed_pauses_for_all_names() {
    let mut authority = AuthorityRecord::default();
    assert_eq!(authority.usable_s("a", LIMITS), 0);
    (0..8).for_each(|_| authority.failed(NOW));
    let first_s = authority.usable_s("a", LIMITS) - NOW;
    assert!(first_s <= 7, "eight names that failed together are one failure: {first_s}");
    authority.failed(NOW + 7);
    assert!(authority.usable_s("a", LIMITS) - NOW > 7 + first_s);
    authority.responded();
    assert_eq!(authority.usable_s("a", LIMITS), 0);
}

proptest! {
    /// Time passes and jumps; a name whose certificates are all lost orders as often as it may.
    #[test]
    fn no_week_has_more_orders_than_allowed(jumps in prop::collection::vec(0_u64..3 * DAY, 1..80)) {
        let mut record = NameRecord::default();
        let mut now_s = NOW;
        for jump in jumps {
            now_s += jump;
            record.correct(now_s);
            if step(now_s, None, &record) == Step::Obtain {
                record.ordered(now_s);
            }
            let within = record.orders().iter().filter(|&&at_s| now_s - at_s < NAME_PERIOD);
            prop_assert!(within.count() <= LIMITS.orders_per_name);
        }
    }

    #[test]
    fn no_three_hours_have_more_orders_than_allowed(jumps in prop::collection::vec(0_u64..HOUR, 1..200)) {
        let limits = Limits { orders: 7, ..LIMITS };
        let mut authority = AuthorityRecord::default();
        let mut now_s = NOW;
        for jump in jumps {
            now_s += jump;
            if authority.usable_s("a", limits) <= now_s {
                authority.ordered(now_s);
            }
            let within = authority.orders().iter().filter(|&&at_s| now_s - at_s < ORDERS_PERIOD);
            prop_assert!(within.count() <= limits.orders);
        }
    }
}
