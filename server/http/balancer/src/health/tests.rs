use super::*;
use outboard_config::Config;
use std::path::Path;

fn rules(keys: &str) -> UpstreamGroup {
    let text =
        format!("[upstream.a]\nservers = [\"127.0.0.1:1\"]\n{keys}\n[app.site]\nroot = \"/tmp\"\n");
    let config = Config::parse(&text, Path::new("/tmp/outboard.toml"));
    config.unwrap_or_else(|errors| panic!("{errors}")).upstreams.remove(0)
}

fn passive() -> UpstreamGroup {
    rules("max_fails = 2\nfail_window = \"10s\"\nfail_timeout = \"5s\"")
}

#[test]
fn failures_within_the_window_eject_a_server() {
    let (health, rules) = (Health::default(), passive());
    assert_eq!(health.failed(&rules, 1_000), None);
    assert_eq!(health.failed(&rules, 11_000), None, "the first failure is too old");
    assert_eq!(health.failed(&rules, 12_000), Some(Change::Ejected));
    assert_eq!(health.state(16_999), State::Ejected);
    assert_eq!(health.state(17_000), State::TrialDue);
}

#[test]
fn a_server_without_a_limit_is_never_ejected() {
    let (health, rules) = (Health::default(), rules("max_fails = 0"));
    assert!((0..100).all(|now_ms| health.failed(&rules, now_ms).is_none()));
    assert_eq!(health.state(100), State::Up);
}

#[test]
fn one_request_at_a_time_is_the_trial() {
    let (health, rules) = (Health::default(), passive());
    health.failed(&rules, 0);
    health.failed(&rules, 1);
    assert!(!health.try_out(5_000, 5_000), "it is too early");
    assert!(health.try_out(5_001, 5_000));
    assert!(!health.try_out(5_001, 5_000), "another request was faster");
    assert_eq!(health.failed(&rules, 5_100), None, "it stays ejected, which is no news");
    assert_eq!(health.state(10_099), State::Ejected);
    assert!(health.try_out(10_100, 5_000));
    assert_eq!(health.succeeded(10_100, 10_200), Some(Change::Up));
    assert_eq!(health.state(10_200), State::Up);
}

#[test]
fn a_request_from_before_the_ejection_shows_nothing() {
    let (health, rules) = (Health::default(), passive());
    health.failed(&rules, 100);
    health.failed(&rules, 200);
    assert_eq!(health.succeeded(150, 300), None);
    assert_eq!(health.state(300), State::Ejected);
}

#[test]
fn checks_take_a_server_down_and_up_at_their_thresholds() {
    let rules = rules("health_check = { path = \"/\", healthy = 2, unhealthy = 2 }");
    let check = rules.health_check.clone().unwrap();
    let health = Health::default();
    assert_eq!(health.checked(false, &check, 1), None);
    assert_eq!(health.checked(true, &check, 2), None, "the sequence is interrupted");
    assert_eq!(health.checked(false, &check, 3), None);
    assert_eq!(health.checked(false, &check, 4), Some(Change::Down));
    assert_eq!(health.checked(false, &check, 5), None, "it is no news");
    assert_eq!(health.succeeded(6, 7), None, "checks alone bring it back");
    assert_eq!(health.failed(&rules, 8), None);
    assert_eq!((health.checked(true, &check, 9), health.state(9)), (None, State::Down));
    assert_eq!((health.checked(true, &check, 10), health.state(10)), (Some(Change::Up), State::Up));
}

#[test]
fn a_check_is_the_trial_of_an_ejected_server() {
    let rules = rules("max_fails = 1\nfail_timeout = \"1s\"\nhealth_check = { healthy = 1 }");
    let check = rules.health_check.clone().unwrap();
    let health = Health::default();
    assert_eq!(health.failed(&rules, 0), Some(Change::Ejected));
    assert_eq!((health.checked(true, &check, 999), health.state(999)), (None, State::Ejected));
    assert_eq!(health.checked(true, &check, 1_000), Some(Change::Up));
}

#[test]
fn without_checks_a_server_is_not_down_by_them() {
    let rules = rules("health_check = { path = \"/\", unhealthy = 1 }");
    let health = Health::default();
    health.checked(false, &rules.health_check.unwrap(), 1);
    assert_eq!(health.state(1), State::Down);
    health.forget_checks();
    assert_eq!(health.state(1), State::Up);
}

#[test]
fn the_share_of_a_recovered_server_grows() {
    let (health, rules) = (Health::default(), passive());
    assert_eq!(health.share(1_000, 0), 100, "it was never down");
    health.failed(&rules, 0);
    health.failed(&rules, 1);
    health.succeeded(10_000, 10_000);
    let shares = [10_000, 10_500, 11_000, 99_000].map(|now_ms| health.share(1_000, now_ms));
    assert_eq!(shares, [1, 50, 100, 100]);
    assert_eq!(health.share(0, 10_000), 100);
}

#[test]
fn a_drained_server_is_used_for_nothing() {
    let health = Health::default();
    assert!(!health.set_drained(true));
    assert_eq!(health.state(0), State::Drained);
    assert!(health.set_drained(false));
    assert_eq!(health.state(0), State::Up);
}
