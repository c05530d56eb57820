use super::*;
use outboard_config::Config;
use std::path::Path;

fn rules(servers: &str, keys: &str) -> UpstreamGroup {
    let text =
        format!("[upstream.a]\nservers = [{servers}]\n{keys}\n[app.site]\nroot = \"/tmp\"\n");
    let config = Config::parse(&text, Path::new("/tmp/outboard.toml"));
    config.unwrap_or_else(|errors| panic!("{errors}")).upstreams.remove(0)
}

fn group(servers: &str, keys: &str) -> Arc<Group> {
    Group::new(rules(servers, keys), None)
}

const THREE: &str = "\"a:1\", \"b:1\", \"c:1\"";

fn name(attempt: &Attempt) -> String {
    attempt.server().name().trim_start_matches("http://").to_owned()
}

fn choose(group: &Arc<Group>, choice: Choice<'_>, now_ms: u64) -> String {
    name(&group.choose(choice, now_ms).unwrap())
}

/// Has a server fail until it is ejected.
fn eject(group: &Arc<Group>, server: &str, now_ms: u64) {
    let members = group.members();
    let member = members.iter().find(|one| one.server.name().contains(server)).unwrap();
    while member.server.state(now_ms) == State::Up {
        member.server.failed(group.rules(), now_ms);
    }
}

fn drain(group: &Arc<Group>, server: &str) {
    let members = group.members();
    members.iter().find(|one| one.server.name().contains(server)).unwrap().server.set_drained(true);
}

#[test]
fn ejected_and_drained_servers_get_nothing_while_others_are_up() {
    let group = group(THREE, "");
    eject(&group, "a:1", 0);
    drain(&group, "b:1");
    assert!((0..10).all(|_| choose(&group, Choice::default(), 1) == "c:1"));
}

#[test]
fn backups_serve_only_while_no_other_server_is_up() {
    let group = group("\"a:1\", { url = \"b:1\", backup = true }", "");
    assert!((0..10).all(|_| choose(&group, Choice::default(), 0) == "a:1"));
    eject(&group, "a:1", 0);
    assert_eq!(choose(&group, Choice::default(), 1), "b:1");
}

#[test]
fn the_last_servers_are_used_although_they_are_ejected() {
    let group = group(THREE, "fail_timeout = \"10s\"");
    for (server, now_ms) in [("a:1", 5), ("b:1", 1), ("c:1", 9)] {
        eject(&group, server, now_ms);
    }
    assert_eq!(choose(&group, Choice::default(), 10), "b:1", "the one that is due first");
    for server in ["a:1", "b:1", "c:1"] {
        drain(&group, server);
    }
    assert_eq!(group.choose(Choice::default(), 10).unwrap_err(), Refused::Down);
}

#[test]
fn a_trial_is_for_requests_that_can_be_retried() {
    let group = group("\"a:1\", \"b:1\"", "fail_timeout = \"1s\"");
    eject(&group, "a:1", 0);
    let post = Choice::default();
    let get = Choice { may_try_out: true, ..post };
    assert_eq!(choose(&group, get, 999), "b:1");
    assert_eq!(choose(&group, post, 1_999), "b:1");
    let trial = group.choose(get, 1_000).unwrap();
    assert_eq!(name(&trial), "a:1");
    assert_eq!(choose(&group, get, 1_000), "b:1", "one trial at a time");
    trial.succeeded(1, 1_001);
    let mut names: Vec<_> = (0..2).map(|_| choose(&group, post, 1_002)).collect();
    names.sort();
    assert_eq!(names, ["a:1", "b:1"]);
}

#[test]
fn an_overdue_trial_is_for_any_request() {
    let group = group("\"a:1\", \"b:1\"", "fail_timeout = \"1s\"");
    eject(&group, "a:1", 0);
    assert_eq!(choose(&group, Choice::default(), 1_999), "b:1");
    assert_eq!(choose(&group, Choice::default(), 2_000), "a:1");
    assert_eq!(choose(&group, Choice::default(), 2_000), "b:1");
}

#[test]
fn a_full_server_is_passed_over_and_full_servers_are_busy() {
    let limited = "{ url = \"a:1\", max_connections = 1 }, { url = \"b:1\", max_connections = 2 }";
    let group = group(limited, "");
    let held: Vec<_> = (0..3).map(|_| group.choose(Choice::default(), 0).unwrap()).collect();
    assert_eq!(group.choose(Choice::default(), 0).unwrap_err(), Refused::Busy);
    drop(held);
    assert!(group.choose(Choice::default(), 0).is_ok());
}

#[test]
fn requests_beyond_the_limit_of_the_group_are_refused() {
    let group = group(THREE, "max_requests = 2");
    let held = [(); 2].map(|()| group.choose(Choice::default(), 0).unwrap());
    assert_eq!(group.choose(Choice::default(), 0).unwrap_err(), Refused::Busy);
    drop(held);
    assert!(group.choose(Choice::default(), 0).is_ok());
}

#[test]
fn the_least_loaded_server_is_chosen_by_weight() {
    let servers = "\"a:1\", { url = \"b:1\", weight = 3 }";
    let group = group(servers, "balance = \"least_connections\"");
    let held: Vec<_> = (0..8).map(|_| group.choose(Choice::default(), 0).unwrap()).collect();
    assert_eq!(held.iter().filter(|one| name(one) == "b:1").count(), 6);
    let equal = group_of_equals();
    let names: Vec<_> = (0..3).map(|_| choose(&equal, Choice::default(), 0)).collect();
    assert_eq!(names, ["a:1", "b:1", "c:1"], "idle servers take turns");
}

fn group_of_equals() -> Arc<Group> {
    group(THREE, "balance = \"least_connections\"")
}

#[test]
fn a_key_stays_at_its_server_and_returns_to_it() {
    let group = group(THREE, "balance = \"hash\"");
    let of = |key: u8, now_ms| {
        choose(&group, Choice { key: Some(rendezvous::hash(&[key])), ..Choice::default() }, now_ms)
    };
    let before: Vec<_> = (0..60).map(|key| of(key, 0)).collect();
    eject(&group, "a:1", 0);
    for (key, server) in before.iter().enumerate() {
        let after = of(key as u8, 1);
        assert!(if server == "a:1" { after != "a:1" } else { after == *server });
    }
    let members = group.members();
    members[0].server.health.succeeded(2, 2);
    let again: Vec<_> = (0..60).map(|key| of(key, 3)).collect();
    assert_eq!(before, again);
    assert!(before.iter().any(|server| server == "a:1"));
}

#[test]
fn a_cookie_leads_to_its_server_unless_it_is_forged_or_down() {
    let group = group(THREE, "sticky = { secret = \"s\" }");
    let first = group.choose(Choice::default(), 0).unwrap();
    let cookie = first.new_cookie().unwrap().to_vec();
    let bound = Choice { cookie: Some(&cookie), ..Choice::default() };
    for _ in 0..5 {
        let again = group.choose(bound, 0).unwrap();
        assert_eq!((name(&again), again.new_cookie()), (name(&first), None));
    }
    for forged in [&b""[..], b"a:1", b"0", &cookie[1..], &[0xff; 32]] {
        let choice = Choice { cookie: Some(forged), ..Choice::default() };
        assert!(group.choose(choice, 0).unwrap().new_cookie().is_some(), "{forged:?}");
    }
    drain(&group, &name(&first));
    let other = group.choose(bound, 0).unwrap();
    assert!(name(&other) != name(&first) && other.new_cookie().is_some());
}

#[test]
fn retries_go_to_other_servers_and_end() {
    let group = group(THREE, "retries = 5");
    let first = group.choose(Choice::default(), 0).unwrap();
    let mut tried = vec![first.server().clone()];
    while let Some(next) = group.choose_again(Choice { tried: &tried, ..Choice::default() }, 0) {
        assert!(!tried.iter().any(|one| Arc::ptr_eq(one, next.server())));
        tried.push(next.server().clone());
    }
    assert_eq!(tried.len(), 3);
    let limited = super::tests::group(THREE, "retries = 1");
    let tried = &tried[..2];
    assert!(limited.choose_again(Choice { tried, ..Choice::default() }, 0).is_none());
}

#[test]
fn retries_are_bounded_by_their_budget() {
    let group = group(THREE, "retry_budget = \"0%\"\nmax_fails = 0");
    let retry = || {
        let first = group.choose(Choice::default(), 0).unwrap();
        let tried = [first.server().clone()];
        group.choose_again(Choice { tried: &tried, ..Choice::default() }, 0).is_some()
    };
    assert_eq!((0..500).filter(|_| retry()).count(), 100);
}

#[test]
fn limits_hold_for_all_threads_together() {
    let group =
        group("{ url = \"a:1\", max_connections = 3 }, { url = \"b:1\", max_connections = 3 }", "");
    let most = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for now_ms in 0..2_000 {
                    let Ok(attempt) = group.choose(Choice::default(), now_ms) else { continue };
                    most.fetch_max(attempt.server().figures().under_way, Ordering::Relaxed);
                    attempt.succeeded(1, now_ms);
                }
            });
        }
    });
    assert!((1..=3).contains(&most.into_inner()));
    let figures = group.members().into_iter().map(|member| member.server.figures());
    assert!(figures.into_iter().all(|one| one.under_way == 0 && one.failures == 0));
    assert_eq!(group.under_way.load(Ordering::Relaxed), 0);
}

#[test]
fn an_open_breaker_refuses_at_once() {
    let keys = "max_fails = 0\nbreaker = { min_requests = 2, open = \"1s\" }";
    let group = group(THREE, keys);
    let fail = || group.choose(Choice::default(), 0).unwrap().failed(0).1;
    assert_eq!([fail(), fail()], [false, true]);
    assert_eq!(group.choose(Choice::default(), 999).unwrap_err(), Refused::Open);
    group.choose(Choice::default(), 1_000).unwrap().succeeded(1, 1_001);
    assert!(!group.is_open());
}

#[test]
fn an_attempt_counts_until_it_is_dropped() {
    let group = group("\"a:1\"", "");
    let attempt = group.choose(Choice::default(), 0).unwrap();
    let server = attempt.server().clone();
    attempt.succeeded(80, 0);
    assert_eq!((server.figures().under_way, server.figures().requests), (1, 1));
    drop(attempt);
    group.choose(Choice::default(), 0).unwrap().failed(0);
    let figures = server.figures();
    assert_eq!((figures.under_way, figures.requests, figures.failures), (0, 2, 1));
    assert_eq!((figures.total_us, figures.recent_us), (80, 80));
}

#[test]
fn a_name_is_as_many_servers_as_it_has_addresses() {
    let group = group("\"http://app:81\", \"b:1\"", "");
    let addresses = |texts: &[&str]| -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    };
    let names = |group: &Group| -> Vec<String> {
        group.members().iter().map(|one| one.server.name().to_owned()).collect()
    };
    assert!(group.set_addresses(0, &addresses(&["10.0.0.2", "10.0.0.1", "10.0.0.2"])));
    let two = ["http://app:81 (10.0.0.1)", "http://app:81 (10.0.0.2)", "http://b:1"];
    assert_eq!(names(&group), two);
    assert!(!group.set_addresses(0, &addresses(&["10.0.0.1", "10.0.0.2"])), "it is not new");
    assert!(!group.set_addresses(0, &[]), "a name that has disappeared keeps its addresses");
    let stays = group.members()[1].server.clone();
    assert!(group.set_addresses(0, &addresses(&["10.0.0.2", "::1"])));
    assert!(Arc::ptr_eq(&stays, &group.members()[0].server));
    let reloaded = Group::new(group.rules().clone(), Some(&group));
    assert_eq!(names(&reloaded), names(&group), "a reload does not forget them");
}

#[test]
fn a_reload_keeps_the_state_of_servers_that_remain() {
    let before = group(THREE, "");
    eject(&before, "b:1", 0);
    drain(&before, "c:1");
    let after = Group::new(rules("\"b:1\", \"c:1\", \"d:1\"", "balance = \"hash\""), Some(&before));
    let states: Vec<_> = after.members().iter().map(|one| one.server.state(1)).collect();
    assert_eq!(states, [State::Ejected, State::Drained, State::Up]);
}

#[test]
fn only_an_active_configuration_without_checks_ends_their_result() {
    let before = group("\"a:1\"", "health_check = { unhealthy = 1 }");
    let server = before.members()[0].server.clone();
    server.checked(false, before.rules().health_check.as_ref().unwrap(), 0);
    let after = Group::new(rules("\"a:1\"", ""), Some(&before));
    assert_eq!(server.state(1), State::Down, "the reload may still fail");
    after.activate();
    assert_eq!(server.state(1), State::Up);
}

#[test]
fn a_recovering_server_gets_a_growing_share() {
    let group = group("\"a:1\", \"b:1\"", "slow_start = \"10s\"\nfail_timeout = \"1s\"");
    eject(&group, "a:1", 0);
    let members = group.members();
    members[0].server.health.succeeded(1_000, 1_000);
    let share =
        |now_ms| (0..100).filter(|_| choose(&group, Choice::default(), now_ms) == "a:1").count();
    let (begin, middle, end) = (share(1_000), share(6_000), share(11_000));
    assert!(begin <= 2 && (30..38).contains(&middle) && end == 50, "{begin} {middle} {end}");
}
