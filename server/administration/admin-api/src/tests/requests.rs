//! Requests as the command line sends them and as other clients may write them.

use crate::{Endpoint, bans, cache, certificates, config, dashboard, kv, opcache};
use crate::{processes, server, snapshot, status, upstreams};
use proptest::prelude::*;

fn line<E: Endpoint>(request: &E) -> String {
    format!("{} {}", E::METHOD.as_str(), request.target())
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn requests_without_parameters_have_no_query() {
    let lines = [
        (line(&status::Get {}), "GET /status"),
        (line(&config::Get {}), "GET /config"),
        (line(&opcache::Get {}), "GET /opcache"),
        (line(&certificates::Get {}), "GET /certificates"),
        (line(&bans::List {}), "GET /bans"),
        (line(&upstreams::List {}), "GET /upstreams"),
        (line(&cache::Stats::default()), "GET /cache/stats"),
        (line(&cache::List::default()), "GET /cache/list"),
        (line(&cache::Audit::default()), "POST /cache/audit"),
        (line(&kv::Stats::default()), "GET /kv/stats"),
        (line(&kv::Compact::default()), "POST /kv/compact"),
        (line(&kv::Restore::default()), "POST /kv/restore"),
        (line(&snapshot::Retire::default()), "POST /snapshot/retire"),
        (line(&processes::Restart::default()), "POST /process/restart"),
        (line(&server::Reload {}), "POST /reload"),
        (line(&server::Upgrade {}), "POST /upgrade"),
        (line(&server::Stop {}), "POST /stop"),
    ];
    for (sent, expected) in lines {
        assert_eq!(sent, expected);
    }
}

#[test]
fn parameters_are_encoded_in_the_query() {
    let ban = bans::Add {
        network: "2001:db8::/32".to_owned(),
        for_s: Some(3600),
        reason: text("100 % spam & more"),
    };
    let purge = cache::Purge { tag: vec!["a,b".to_owned(), "ü".to_owned()], ..Default::default() };
    let drain =
        upstreams::Drain { upstream: "api".to_owned(), server: "http://10.0.0.1:80".to_owned() };
    let restart = processes::Restart { app: text("shop"), process: text("queue") };
    let retire = snapshot::Retire { app: text("shop"), key: text("option:site#url") };
    let lines = [
        (
            line(&ban),
            "POST /bans/add?for_s=3600&network=2001%3Adb8%3A%3A%2F32&reason=100%20%25%20spam%20%26%20more",
        ),
        (line(&purge), "POST /cache/purge?tag=a%2Cb&tag=%C3%BC"),
        (line(&drain), "POST /upstreams/drain?server=http%3A%2F%2F10.0.0.1%3A80&upstream=api"),
        (line(&retire), "POST /snapshot/retire?app=shop&key=option%3Asite%23url"),
        (line(&restart), "POST /process/restart?app=shop&process=queue"),
    ];
    for (sent, expected) in lines {
        assert_eq!(sent, expected);
    }
}

#[test]
fn a_missing_parameter_is_named() {
    let drain = upstreams::Drain::from_query("upstream=api").unwrap_err();
    assert_eq!(drain, "missing field `server`");
    let ban = bans::Add::from_query("for_s=1").unwrap_err();
    assert_eq!(ban, "missing field `network`");
    assert_eq!(bans::Remove::from_query("").unwrap_err(), "missing field `network`");
}

#[test]
fn numbers_outside_of_their_range_are_rejected() {
    let since = |query: &str| dashboard::Get::from_query(query).map(|request| request.since_ms);
    assert_eq!(since("since_ms=18446744073709551615"), Ok(u64::MAX));
    assert_eq!(since("since_ms=+7"), Ok(7));
    for (value, shown) in [
        ("18446744073709551616", "18446744073709551616"),
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("0x10", "0x10"),
        ("%31%20", "1 "),
        ("", ""),
    ] {
        let error = since(&format!("since_ms={value}")).unwrap_err();
        assert_eq!(error, format!("`since_ms` is not a number: {shown}"));
    }
}

#[test]
fn a_switch_is_on_unless_it_is_0_or_false() {
    for (query, all) in [
        ("all", true),
        ("all=1", true),
        ("all=true", true),
        ("all=0", false),
        ("all=false", false),
        ("all=%30", false),
        ("ALL=1", false),
    ] {
        assert_eq!(cache::Purge::from_query(query).unwrap().all, all, "{query}");
    }
}

#[test]
fn the_last_value_of_a_repeated_parameter_counts() {
    let list = cache::List::from_query("app=first&prefix=/a&app=second").unwrap();
    assert_eq!(list, cache::List { app: text("second"), prefix: text("/a") });
    assert!(!cache::Purge::from_query("all=1&all=0").unwrap().all);
}

#[test]
fn an_empty_text_differs_from_a_missing_one() {
    let list = |prefix| cache::List { app: None, prefix };
    assert_eq!(list(text("")).query(), "prefix=");
    assert_eq!(cache::List::from_query("prefix="), Ok(list(text(""))));
    assert_eq!(cache::List::from_query(""), Ok(list(None)));
}

#[test]
fn only_percent_signs_with_two_digits_are_decoded() {
    for (value, expected) in [
        ("a+b", "a+b"),
        ("%2B%2b", "++"),
        ("%", "%"),
        ("%4", "%4"),
        ("%%41", "%A"),
        ("%+1", "%+1"),
        ("a=b=c", "a=b=c"),
        ("%00", "\0"),
        ("%C3%BC", "ü"),
        ("%c3", "\u{fffd}"),
        ("%é", "%é"),
    ] {
        let list = cache::List::from_query(&format!("app={value}")).unwrap();
        assert_eq!(list.app.as_deref(), Some(expected), "{value}");
    }
}

#[test]
fn names_of_parameters_are_not_decoded() {
    assert_eq!(cache::List::from_query("%61pp=shop"), Ok(cache::List::default()));
    assert_eq!(
        cache::List::from_query("=shop&app"),
        Ok(cache::List { app: text("1"), prefix: None })
    );
}

#[test]
fn an_endpoint_without_parameters_ignores_all() {
    for query in ["", "app=shop", "=", "&&", "%", "a=b&a=c"] {
        assert_eq!(status::Get::from_query(query), Ok(status::Get {}), "{query}");
    }
}

proptest! {
    #[test]
    fn a_purge_arrives_as_it_was_sent(
        app in proptest::option::of(any::<String>()),
        url in proptest::option::of(any::<String>()),
        prefix in proptest::option::of(any::<String>()),
        tag in proptest::collection::vec(any::<String>(), 0..4),
        all in any::<bool>(),
        soft in any::<bool>(),
    ) {
        let purge = cache::Purge { app, url, prefix, tag, all, soft };
        prop_assert_eq!(cache::Purge::from_query(&purge.query()), Ok(purge));
    }

    #[test]
    fn a_ban_arrives_as_it_was_sent(
        network in any::<String>(),
        for_s in proptest::option::of(any::<u64>()),
        reason in proptest::option::of(any::<String>()),
    ) {
        let ban = bans::Add { network, for_s, reason };
        prop_assert_eq!(bans::Add::from_query(&ban.query()), Ok(ban));
    }

    #[test]
    fn a_target_has_no_byte_that_splits_a_request_line(upstream in any::<String>(), server in any::<String>()) {
        let target = upstreams::Enable { upstream, server }.target();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%/?=&".contains(&byte);
        prop_assert!(target.bytes().all(is_plain), "{}", target);
        prop_assert_eq!(target.matches(['&', '?']).count(), 2);
    }

    #[test]
    fn hostile_queries_are_read_or_refused_in_one_line(query in "[a-z_=&%0-9é\\PC]{0,64}") {
        for error in [
            cache::Purge::from_query(&query).err(),
            cache::Audit::from_query(&query).err(),
            cache::Audit::from_query(&format!("sample={query}")).err(),
        ] {
            prop_assert!(error.is_none_or(|error| !error.contains('\n')));
        }
    }
}
