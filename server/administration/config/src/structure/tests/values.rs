//! Values that are read through `${…}`, and hints for words that are close to a known one.

use super::*;
use crate::structure::neighbour::nearest;
use crate::{Config, Count};

/// No machine has this variable, so its default is the value.
fn expanded(value: &str) -> String {
    format!("\"${{OUTBOARD_TEST_WITHOUT_VALUE:-{value}}}\"")
}

fn valid(text: &str) -> Config {
    crate::parse_on(&FullDisk, text, Path::new("/srv/outboard.toml")).unwrap()
}

#[test]
fn an_expanded_text_is_read_as_its_key_requires() {
    let config = valid(&format!(
        "listen = {}\nlimits.header_count = {}\nlimits.body = {}\n{APP}pool.max = {}\n\
         compress = {}\nphp.ini = {{ memory_limit = {}, display_errors = {} }}\n",
        expanded("127.0.0.1:81"),
        expanded("99"),
        expanded("1m"),
        expanded("3"),
        expanded("false"),
        expanded("256M"),
        expanded("true"),
    ));
    assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:81");
    let app = &config.apps[0];
    assert_eq!((app.limits.header_count, app.limits.body_bytes), (99, 1 << 20));
    assert_eq!((app.pool.max, app.compress), (Count::Fixed(3), false));
    assert_eq!(app.php.ini["memory_limit"], "256M");
    assert_eq!(app.php.ini["display_errors"], "true", "a text where a text is possible");
}

#[test]
fn an_expanded_text_is_checked_like_a_written_one() {
    for (key, value, kind, words) in [
        ("limits.header_count", "5", Kind::OutOfRange, "from 8 to 1000"),
        ("limits.header_count", "many", Kind::WrongType, "found a string after expansion"),
        ("limits.header_count", "1.5", Kind::WrongType, "found a string after expansion"),
        ("static.precompressed", "yes", Kind::WrongType, "expected a boolean"),
        ("limits.body", "1 TiB", Kind::BadValue, "unknown unit `TiB`"),
        ("log.error.level", "inof", Kind::OutOfRange, "did you mean \"info\"?"),
        ("limits.header_timeout", "5ms", Kind::OutOfRange, "at least 100ms"),
    ] {
        let text = format!("{key} = {}\n{APP}", expanded(value));
        let (found, line, _, message) = one(&text);
        assert_eq!((found, line), (kind, 1), "{text}{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_variable_that_is_not_set_is_named_with_its_key() {
    let text = format!("user = \"${{OUTBOARD_TEST_WITHOUT_VALUE}}\"\n{APP}");
    assert_one(
        &text,
        Kind::BadValue,
        (1, 8),
        &["user", "`OUTBOARD_TEST_WITHOUT_VALUE` is not set"],
    );
}

#[test]
fn the_nearest_word_is_close_or_begins_so() {
    let known = ["request_deadline", "requests", "root", "hosts", "min", "max"];
    for (word, expected) in [
        ("root", Some("root")),
        ("rooot", Some("root")),
        ("otor", None),
        ("Hosts", Some("hosts")),
        ("host", Some("hosts")),
        ("request", Some("requests")),
        ("request-deadline", Some("request_deadline")),
        ("request_dead", Some("request_deadline")),
        ("mni", Some("min")),
        ("xyz", None),
        ("", None),
    ] {
        assert_eq!(nearest(word, known.into_iter()), expected, "{word}");
    }
    assert_eq!(nearest(&"r".repeat(65), known.into_iter()), None, "that is no misspelling");
    assert_eq!(nearest("root", std::iter::empty()), None);
}

#[test]
fn a_file_of_types_in_the_wrong_place_reports_each_once() {
    let text = format!("listen = {{ }}\npool = [1]\n{APP}hosts = 5\nlimits = \"1m\"\n");
    let all = errors(&text);
    let lines: Vec<usize> = all.iter().map(|error| error.position.as_ref().unwrap().line).collect();
    assert_eq!(lines, [1, 2, 5, 6], "{all}");
}

#[test]
fn secrets_are_not_repeated_by_an_error_about_them() {
    let text =
        format!("{APP}proxy = [{{ path = \"/\", upstream = \"ftp://${{file:token.txt}}\" }}]\n");
    let all = errors(&text);
    assert!(!all.to_string().contains("content of token.txt"), "{all}");
}
