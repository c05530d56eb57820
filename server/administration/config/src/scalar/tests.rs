use super::*;
use std::net::IpAddr;

mod kinds;
mod messages;

fn text<S: Scalar>(text: &str) -> Option<S> {
    S::read(Written::Text(text)).ok()
}

fn fault<S: Scalar + std::fmt::Debug>(text: &str) -> String {
    let fault = S::read(Written::Text(text)).unwrap_err();
    format!("{} / {}", fault.message, fault.hint.unwrap_or_default())
}

#[test]
fn sizes_are_read_in_every_spelling() {
    for (written, bytes) in [
        ("64 MiB", 64 << 20),
        ("64M", 64 << 20),
        ("8k", 8 << 10),
        ("8KB", 8 << 10),
        ("1g", 1 << 30),
        ("10_000", 10_000),
        ("12 b", 12),
        (" 0 ", 0),
    ] {
        assert_eq!(text(written), Some(ByteSize(bytes)), "{written}");
    }
    assert_eq!(ByteSize::read(Written::Integer(7)).unwrap(), ByteSize(7));
    for bad in ["", "MiB", "-1", "1.5 MiB", "99999999999999999999", "9007199254740993", "8 TiB"] {
        assert_eq!(text::<ByteSize>(bad), None, "{bad}");
    }
    assert!(ByteSize::read(Written::Integer(-1)).is_err());
}

#[test]
fn durations_are_read_in_every_spelling() {
    for (written, ms) in [
        ("30s", 30_000),
        ("500ms", 500),
        ("1m", 60_000),
        ("2 h", 7_200_000),
        ("1d", 86_400_000),
        ("5", 5_000),
    ] {
        assert_eq!(text(written), Some(Period(ms)), "{written}");
    }
    assert_eq!(Period::read(Written::Integer(5)).unwrap(), Period(5_000));
    for bad in ["", "s", "5 parsecs", "-5s", "18446744073709551615d"] {
        assert_eq!(text::<Period>(bad), None, "{bad}");
    }
}

#[test]
fn a_default_round_trips() {
    for ms in [0, 1, 500, 1_000, 60_000, 90_000, 120_000, 3_600_000] {
        assert_eq!(text(&Period(ms).write()), Some(Period(ms)));
    }
    for bytes in [0, 1, 1 << 10, 1500, 64 << 20, 3 << 30] {
        assert_eq!(text(&ByteSize(bytes).write()), Some(ByteSize(bytes)));
    }
}

#[test]
fn a_budget_is_automatic_a_size_or_a_share() {
    assert_eq!(text("auto"), Some(MemoryBudget::Auto));
    assert_eq!(text("512 MiB"), Some(MemoryBudget::Bytes(512 << 20)));
    assert_eq!(text("50%"), Some(MemoryBudget::Percent(50)));
    for bad in ["0%", "101%", "1 KiB", "half", ""] {
        assert_eq!(text::<MemoryBudget>(bad), None, "{bad}");
    }
}

#[test]
fn addresses_are_read_and_errors_get_the_right_hint() {
    for (written, address) in [
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("[::1]:80", "[::1]:80"),
        ("localhost:80", "127.0.0.1:80"),
        (":80", "0.0.0.0:80"),
        ("*:80", "0.0.0.0:80"),
        ("unix:/run/x.sock", "unix:/run/x.sock"),
    ] {
        assert_eq!(text::<Address>(written).unwrap().write(), address);
    }
    for (written, hint) in [
        ("8080", "127.0.0.1:8080"),
        ("127.0.0.1", "the port is missing"),
        ("::1", "[::1]:8080"),
        ("127.0.0.1:99999", "not a port"),
        ("example.org:80", "hosts = [\"example.org\"]"),
        ("/run/x.sock", "unix:/run/x.sock"),
        ("unix:", "after the colon"),
    ] {
        assert!(
            fault::<Address>(written).contains(hint),
            "{written}: {}",
            fault::<Address>(written)
        );
    }
}

#[test]
fn modes_are_octal_however_they_are_written() {
    assert_eq!(text("0660"), Some(FileMode(0o660)));
    assert_eq!(FileMode::read(Written::Integer(0o600)).unwrap(), FileMode(0o600));
    assert!(FileMode::read(Written::Integer(660)).is_err(), "decimal 660 is 0o1224");
    assert_eq!(text::<FileMode>("+660"), None);
    assert_eq!(text::<FileMode>("rw"), None);
}

#[test]
fn a_network_contains_its_addresses_in_either_form() {
    let holds = |network: &str, address: &str| match text::<Peer>(network) {
        Some(Peer::Network(network)) => network.contains(address.parse::<IpAddr>().unwrap()),
        other => panic!("{network}: {other:?}"),
    };
    assert!(holds("10.0.0.0/8", "10.255.0.1"));
    assert!(!holds("10.0.0.0/8", "11.0.0.1"));
    assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3"));
    assert!(holds("0.0.0.0/0", "203.0.113.9"));
    assert!(!holds("0.0.0.0/0", "2001:db8::1"));
    assert!(holds("192.0.2.1", "192.0.2.1") && !holds("192.0.2.1", "192.0.2.2"));
    assert!(holds("2001:db8::/32", "2001:db8:1::1") && !holds("2001:db8::/32", "2001:db9::1"));
    assert!(holds("::/0", "2001:db8::1"));
    for bad in ["10.0.0.0/33", "::/129", "10/8", "10.0.0.0/", "10.0.0.0/+8"] {
        assert!(text::<Peer>(bad).is_none(), "{bad}");
    }
}

#[test]
fn a_host_matches_itself_and_a_wildcard_its_subdomains() {
    let host = |written: &str| text::<HostPattern>(written).unwrap();
    assert!(host("Example.org").matches("example.ORG."));
    assert!(!host("example.org").matches("www.example.org"));
    assert!(host("*.example.org").matches("b.a.EXAMPLE.org"));
    for other in ["example.org", ".example.org", "badexample.org", "org", ""] {
        assert!(!host("*.example.org").matches(other), "{other}");
    }
    assert!(!host("*.example.org").matches("ü.example.com"));
    assert!(host("[2001:DB8:0::1]").matches("[2001:db8::1]"));
    for bad in
        ["", "*", "_", "a b", "a..b", "-a", "http://a", "a:80", "ä.de", "a.*.b", "*.", "[::1"]
    {
        assert!(text::<HostPattern>(bad).is_none(), "{bad}");
    }
}

#[test]
fn path_patterns_match_as_a_shell_user_expects() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("*.sql", &["/dump.sql", "/a/b/dump.sql"], &["/dump.sql.gz", "/dump_sql"]),
        ("/vendor/", &["/vendor/", "/vendor/a/b.php"], &["/vendor", "/app/vendor/a"]),
        ("/api/**", &["/api/", "/api/a/b"], &["/api", "/v1/api/a"]),
        ("/a/*/c", &["/a/b/c"], &["/a/b/b/c", "/a//c/d"]),
        ("/up/**.php", &["/up/x.php", "/up/2024/x.php"], &["/up/x.jpg"]),
        ("composer.json", &["/composer.json", "/x/composer.json"], &["/xcomposer.json"]),
        ("/?", &["/a"], &["/", "/ab", "//"]),
        ("/a+(b)", &["/a+(b)"], &["/aab"]),
    ];
    for (written, yes, no) in cases {
        let pattern = text::<PathPattern>(written).unwrap();
        for path in *yes {
            assert!(pattern.matches(path.as_bytes()), "{written} should match {path}");
        }
        for path in *no {
            assert!(!pattern.matches(path.as_bytes()), "{written} should not match {path}");
        }
    }
    assert!(text::<PathPattern>("*.sql").unwrap().matches(b"/\xff\n.sql"), "any bytes");
    assert!(text::<PathPattern>("ü.txt").unwrap().matches("/ü.txt".as_bytes()));
}

#[test]
fn invalid_and_huge_expressions_are_rejected() {
    assert!(text::<Expression>("^/a/(.*)$").is_some());
    assert!(fault::<Expression>("(").contains("unclosed group"));
    assert!(fault::<Expression>("(a{1000}){1000}").contains("too large"));
}

#[test]
fn names_and_values_that_break_a_message_are_rejected() {
    assert!(text::<HeaderName>("X-Frame-Options").is_some());
    for bad in ["", "X Y", "X:", "É", "Transfer-Encoding", "content-length"] {
        assert!(text::<HeaderName>(bad).is_none(), "{bad}");
    }
    assert!(text::<HeaderValue>("a\r\nSet-Cookie: x").is_none());
    assert!(text::<UrlPath>("/blog").is_some());
    for bad in ["", "blog", "/a/../b", "/a?b", "/a//b", "/a\n"] {
        assert!(text::<UrlPath>(bad).is_none(), "{bad}");
    }
    for bad in ["200", "999", "40", "abc", "3xx"] {
        assert!(text::<StatusClass>(bad).is_none(), "{bad}");
    }
    assert!(text::<FilePath>("a\0b").is_none());
    assert!(text::<EnvName>("A=B").is_none());
    assert!(text::<FileName>("../x").is_none());
    assert!(text::<AppName>("a b").is_none());
}

#[test]
fn ini_values_are_written_as_in_php_ini() {
    let ini = |written| IniValue::read(written).unwrap().0;
    assert_eq!(ini(Written::Boolean(true)), "1");
    assert_eq!(ini(Written::Boolean(false)), "0");
    assert_eq!(ini(Written::Integer(-1)), "-1");
    assert_eq!(ini(Written::Float(0.5)), "0.5");
    assert_eq!(ini(Written::Text("256M")), "256M");
    assert!(IniValue::read(Written::Float(f64::NAN)).is_err());
}
