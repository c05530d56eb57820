use crate::disk::FullDisk;
use crate::{Diagnostics, Kind};
use std::path::Path;

mod values;

const APP: &str = "[app.site]\nroot = \"public\"\n";

fn errors(text: &str) -> Diagnostics {
    crate::parse_on(&FullDisk, text, Path::new("/srv/outboard.toml")).unwrap_err()
}

/// The only error of a file.
fn one(text: &str) -> (Kind, usize, usize, String) {
    let all = errors(text);
    assert_eq!(all.len(), 1, "{all}");
    let error = all.iter().next().unwrap();
    let position = error.position.as_ref().unwrap();
    let words = format!("{} / {}", error.message, error.hint.as_deref().unwrap_or_default());
    (error.kind, position.line, position.column, words)
}

fn assert_one(text: &str, kind: Kind, (line, column): (usize, usize), words: &[&str]) {
    let found = one(text);
    assert_eq!((found.0, found.1, found.2), (kind, line, column), "{text}\n{}", found.3);
    for word in words {
        assert!(found.3.contains(word), "`{word}` is not in: {}", found.3);
    }
}

#[test]
fn a_misspelt_key_gets_the_nearest_one() {
    let text = "[app.site]\nroot = \"public\"\nfront_controler = \"none\"\n";
    assert_one(
        text,
        Kind::UnknownKey,
        (3, 1),
        &["`front_controler`", "[app.site]", "`front_controller`"],
    );
    assert_one(&format!("usre = \"w\"\n{APP}"), Kind::UnknownKey, (1, 1), &["`user`"]);
    assert_one(
        &format!("{APP}pool.queue-length = 1\n"),
        Kind::UnknownKey,
        (3, 6),
        &["`queue_length`"],
    );
}

#[test]
fn a_key_of_another_section_is_located() {
    let text = format!("{APP}limits.idle_timeout = 5\n");
    assert_one(&text, Kind::UnknownKey, (3, 8), &["write `idle_timeout` in [limits]"]);
    let text = format!("max_memory = \"50%\"\n{APP}");
    assert_one(&text, Kind::UnknownKey, (1, 1), &["write `max_memory` in [pool]"]);
}

#[test]
fn directives_of_other_servers_are_known() {
    let text = "[app.site]\nroot = \"public\"\nserver_name = \"a.b\"\n";
    assert_one(text, Kind::UnknownKey, (3, 1), &["write `hosts` in [app.site]"]);
    let text = format!("{APP}\"pm.max_children\" = 5\n");
    assert_one(&text, Kind::UnknownKey, (3, 1), &["write `max` in [app.site.pool]"]);
    for word in ["timeout", "request_timeout", "request_terminate_timeout", "max_execution_time"] {
        let text = format!("{APP}limits.{word} = \"2s\"\n");
        let hint = "write `request_deadline` in [app.site.limits]";
        assert_one(&text, Kind::UnknownKey, (3, 8), &[hint]);
    }
    let text = format!("client_max_body_size = \"8m\"\n{APP}");
    assert_one(&text, Kind::UnknownKey, (1, 1), &["write `body` in [limits]"]);
}

#[test]
fn a_setting_of_php_has_its_place() {
    let text = format!("{APP}memory_limit = \"256M\"\n");
    assert_one(&text, Kind::UnknownKey, (3, 1), &["write php.ini = { memory_limit = \"256M\" }"]);
    let text = format!("display_errors = true\n{APP}");
    assert_one(&text, Kind::UnknownKey, (1, 1), &["write php.ini = { display_errors = true }"]);
}

#[test]
fn a_wrong_type_has_a_hint_how_to_write_it() {
    let text = format!("listen = 80\n{APP}");
    assert_one(&text, Kind::WrongType, (1, 10), &["write \"0.0.0.0:80\" or \"[::]:80\""]);
    let text = format!("{APP}[app.site.headers]\nset = {{ A = \"b\" }}\n");
    assert_one(&text, Kind::WrongType, (3, 1), &["write [[app.site.headers]] for the first"]);
    let text = format!("trusted_proxies = \"10.0.0.0/8\"\n{APP}");
    assert_one(&text, Kind::WrongType, (1, 19), &["write trusted_proxies = [\"10.0.0.0/8\"]"]);
    let text = format!("log.access = \"/var/log/a\"\n{APP}");
    assert_one(&text, Kind::WrongType, (1, 14), &["write access = { path = \"/var/log/a\" }"]);
}

#[test]
fn a_file_of_another_server_is_recognised() {
    for (text, command) in [
        ("http {\n  server {\n    listen 80;\n  }\n}\n", "outboard import nginx"),
        ("<VirtualHost *:80>\n  ServerName a\n</VirtualHost>\n", "outboard import httpd"),
    ] {
        let hints: Vec<_> = errors(text).iter().filter_map(|error| error.hint.clone()).collect();
        assert_eq!(hints.len(), 1, "{hints:?}");
        assert!(hints[0].contains(command), "{hints:?}");
    }
}

#[test]
fn an_unknown_key_gets_the_list_of_known_ones() {
    assert_one(
        &format!("[io]\nquux = 1\n{APP}"),
        Kind::UnknownKey,
        (2, 1),
        &["backlog, gather_connections, max_temp_size"],
    );
}

#[test]
fn a_wrong_type_is_reported_with_the_expected_one() {
    for (text, column, words) in [
        ("limits.body = true\n", 15, "a size such as"),
        ("limits.header_count = \"100\"\n", 23, "expected a whole number, found a string"),
        ("static.precompressed = \"yes\"\n", 24, "expected a boolean, found a string"),
        ("trusted_proxies = \"10.0.0.0/8\"\n", 19, "expected an array, found a string"),
        ("php.ini.memory_limit = []\n", 24, "found an array"),
        ("log.slow.threshold = 1979-05-27\n", 22, "found a date"),
        ("pool = 5\n", 8, "expected a table, found a whole number"),
        ("pool.min = 1.5\n", 12, "a number or \"auto\""),
        ("listen = 8080\n", 10, "found a whole number"),
    ] {
        assert_one(&format!("{text}{APP}"), Kind::WrongType, (1, column), &[words]);
    }
}

#[test]
fn an_out_of_range_value_is_reported_with_the_bounds() {
    for (text, column, words) in [
        ("limits.header_count = 5\n", 23, "from 8 to 1000"),
        ("pool.max = 0\n", 12, "at least 1"),
        ("limits.header_timeout = \"5ms\"\n", 25, "at least 100ms"),
        ("limits.header = \"2 MiB\"\n", 17, "at most 1 MiB"),
        ("log.error.level = \"inof\"\n", 19, "did you mean \"info\"?"),
        ("static.symlinks = \"perhaps\"\n", 19, "valid values: \"never\", \"owner\", \"always\""),
        ("limits.keepalive_requests = 4294967296\n", 29, "from 0 to 4294967295"),
        ("limits.header_count = 9223372036854775808\n", 23, "too large"),
    ] {
        assert_one(&format!("{text}{APP}"), Kind::OutOfRange, (1, column), &[words]);
    }
}

#[test]
fn the_mode_is_of_the_app_and_not_of_its_php() {
    let text = format!("php.mode = \"worker\"\n{APP}");
    assert_one(&text, Kind::UnknownKey, (1, 5), &["write `mode` in [app.NAME]"]);
    let text = format!("{APP}mode = \"resident\"\n");
    assert_one(&text, Kind::OutOfRange, (3, 8), &["valid values: \"classic\", \"worker\""]);
}

#[test]
fn free_keys_are_checked_too() {
    let text = format!("{APP}[[app.site.headers]]\nset = {{ \"X Y\" = \"1\" }}\n");
    assert_one(&text, Kind::BadValue, (4, 9), &["`X Y` is not a header name"]);
    assert_one("[app.\"a b\"]\nroot = \"public\"\n", Kind::BadValue, (1, 6), &["not an app name"]);
}

#[test]
fn a_missing_key_is_reported_at_its_table() {
    assert_one(
        "[app.site]\npath = \"/\"\n",
        Kind::MissingKey,
        (1, 6),
        &["`root` is missing in [app.site]"],
    );
    let text = format!("{APP}[[app.site.rewrite]]\nto = \"/\"\n");
    assert_one(&text, Kind::MissingKey, (3, 1), &["`match` is missing"]);
}

#[test]
fn an_app_without_a_name_is_explained() {
    assert_one("[app]\nroot = \"public\"\n", Kind::WrongType, (2, 8), &["[app.NAME]"]);
    assert_one("[[app]]\nroot = \"public\"\n", Kind::WrongType, (1, 1), &["[app.NAME]"]);
}

#[test]
fn text_that_is_not_toml_is_a_syntax_error_per_line() {
    let all = errors("a = \nb = [1\nc = 2\n[x\n");
    assert!(all.iter().all(|error| error.kind == Kind::Syntax), "{all}");
    let lines: Vec<usize> = all.iter().map(|m| m.position.as_ref().unwrap().line).collect();
    assert!(lines.len() > 1 && lines.is_sorted_by(|a, b| a < b), "{all}");
    assert_eq!(one("[app.site\nroot = \"public\"").1, 1);
}

#[test]
fn all_errors_are_reported_in_file_order() {
    let all = errors(
        "usre = \"x\"\n\
         [app.b]\nroot = 5\n\
         [limits]\nbody = \"1 XB\"\nheader_count = 1\n\
         [app.a]\nroot = \"public\"\nhosts = [\"a b\", \"c:1\"]\n\
         pool = { min = 5, max = 2 }\n",
    );
    let places: Vec<(usize, usize)> =
        all.iter().map(|m| m.position.as_ref().map(|p| (p.line, p.column)).unwrap()).collect();
    assert_eq!(places, [(1, 1), (3, 8), (5, 8), (6, 16), (9, 10), (9, 17), (10, 16)], "{all}");
}

#[test]
fn the_number_of_reported_errors_is_bounded() {
    let keys: String = (0..20_000).map(|n| format!("key{n} = 1\n")).collect();
    assert!(errors(&keys).len() <= super::ERRORS_MAX + 1);
    assert!(errors(&"= \n".repeat(20_000)).len() <= super::ERRORS_MAX);
    assert!(errors(&"= ".repeat(20_000)).len() <= super::ERRORS_MAX);
}

#[test]
fn deep_nesting_is_rejected() {
    for piece in ["[", "a.", "{a=", "[[", "a = {", "'"] {
        assert!(errors(&piece.repeat(50_000)).len() >= 1);
        assert!(errors(&format!("x = {}", piece.repeat(50_000))).len() >= 1);
    }
    let dotted = format!("{}a = 1\n{APP}", "a.".repeat(70));
    assert_eq!(errors(&dotted).iter().next().unwrap().kind, Kind::UnknownKey);
}
