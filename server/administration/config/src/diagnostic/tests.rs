use super::{Diagnostic, Diagnostics, Kind};
use crate::source::Source;
use std::path::Path;

fn at(text: &str, span: std::ops::Range<usize>) -> Diagnostics {
    let diagnostic = Diagnostic {
        kind: Kind::BadValue,
        position: Some(Source::new(text).position(span)),
        key: None,
        message: "wrong".to_owned(),
        hint: Some("do better".to_owned()),
    };
    Diagnostics::new(Path::new("outboard.toml"), vec![diagnostic])
}

#[test]
fn the_place_is_shown_and_underlined() {
    assert_eq!(
        at("a = 1\nname = \"x\"\n", 13..16).to_string(),
        "outboard.toml:2:8: wrong\n  2 | name = \"x\"\n    |        ^^^\n  hint: do better\n"
    );
}

#[test]
fn columns_count_characters_and_tabs_keep_their_width() {
    assert_eq!(
        at("\té = ü\n", 6..8).to_string(),
        "outboard.toml:1:6: wrong\n  1 | \té = ü\n    | \t    ^\n  hint: do better\n"
    );
}

#[test]
fn an_underline_ends_with_its_line() {
    let shown = at("a = [\r\n1]\n", 4..9).to_string();
    assert!(shown.contains("  1 | a = [\n    |     ^\n"), "{shown}");
}

#[test]
fn a_long_line_is_cut_around_the_place() {
    let text = format!("x = [{}7]", "1, ".repeat(1000));
    let shown = at(&text, 3005..3006).to_string();
    let lines: Vec<&str> = shown.lines().collect();
    let caret = lines[2].chars().position(|c| c == '^').unwrap();
    assert!(lines[1].chars().count() < 140, "{shown}");
    assert_eq!(lines[1].chars().nth(caret), Some('7'), "{shown}");
}

#[test]
fn a_file_cannot_send_escape_sequences_to_the_terminal() {
    let mut errors = at("x = \"\u{1b}[2J\"", 4..10);
    errors.list[0].message = "bad \u{1b}]0;title\u{7}".to_owned();
    assert!(!errors.to_string().contains(['\u{1b}', '\u{7}']));
}

#[test]
fn colour_is_optional() {
    assert!(at("x", 0..1).render(true).contains("\x1b[1;31m"));
    assert!(!at("x", 0..1).render(false).contains('\x1b'));
}

#[test]
fn json_has_the_same_content() {
    let json = serde_json::to_value(at("a = 1\nname = \"x\"\n", 13..16)).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "file": "outboard.toml",
            "valid": false,
            "diagnostics": [{
                "severity": "error",
                "file": "outboard.toml",
                "key": null,
                "kind": "bad-value",
                "line": 2,
                "column": 8,
                "length": 3,
                "text": "name = \"x\"",
                "message": "wrong",
                "hint": "do better",
            }],
        })
    );
}

fn error(line: usize, file: Option<&str>, message: &str) -> Diagnostic {
    let position = super::Position {
        file: file.map(Into::into),
        line,
        column: 1,
        length: 1,
        text: String::new(),
    };
    let (message, hint) = (message.to_owned(), None);
    Diagnostic { kind: Kind::BadValue, position: Some(position), key: None, message, hint }
}

#[test]
fn errors_are_in_the_order_of_the_files_and_each_is_there_once() {
    let general = Diagnostic { position: None, ..error(1, None, "of the whole file") };
    let list = vec![
        error(9, None, "b"),
        error(2, Some("a.toml"), "c"),
        error(9, None, "b"),
        error(3, None, "a"),
        general,
        error(9, None, "other"),
    ];
    let all = Diagnostics::new(Path::new("outboard.toml"), list);
    let messages: Vec<&str> = all.iter().map(|error| &*error.message).collect();
    assert_eq!(messages, ["of the whole file", "a", "b", "other", "c"]);
    assert_eq!(all.len(), 5);
    let files: Vec<_> = all.iter().map(|error| all.file_of(error).to_str().unwrap()).collect();
    assert_eq!(files[3..], ["outboard.toml", "a.toml"]);
}

#[test]
fn a_secret_is_in_no_message_and_no_hint() {
    let mut error = error(1, None, "`hunter2` is not a URL");
    error.hint = Some("hunter2 has no scheme".to_owned());
    let all = Diagnostics::new(Path::new("f"), vec![error]).redacted(&["hunter2".to_owned()]);
    let text = format!("{all}{}", serde_json::to_string(&all).unwrap());
    assert!(!text.contains("hunter2") && text.contains("[redacted]"), "{text}");
}

#[test]
fn an_error_without_a_position_is_one_line() {
    let all = Diagnostics::unusable(Path::new("a.pem"), "the key does not match".to_owned());
    assert_eq!(all.to_string(), "a.pem: the key does not match\n");
    let json = serde_json::to_value(&all).unwrap();
    assert_eq!(json["diagnostics"][0]["kind"], "path");
    assert_eq!(json["diagnostics"][0]["line"], serde_json::Value::Null);
    let moved = at("a = 1\n", 0..1).without_positions(Path::new("public"));
    assert_eq!(moved.to_string(), "public: wrong\n  hint: do better\n");
    assert_eq!(moved.path(), Path::new("public"));
}

#[test]
fn a_log_has_one_line_for_each_error() {
    let list = vec![error(2, None, "a"), error(3, Some("b.toml"), "b\nc")];
    let lines: Vec<String> = Diagnostics::new(Path::new("f"), list).lines().collect();
    assert_eq!(lines, ["f:2:1: a", "b.toml:3:1: b\u{fffd}c"]);
    assert_eq!(at("a = 1\n", 0..1).lines().next().unwrap(), "outboard.toml:1:1: wrong; do better");
}

#[test]
fn colours_are_around_the_same_text() {
    let errors = at("a = 1\n", 4..5);
    let plain = errors.render(false);
    let mut coloured = errors.render(true);
    for code in ["\u{1b}[1m", "\u{1b}[1;31m", "\u{1b}[36m", "\u{1b}[0m"] {
        assert!(coloured.contains(code), "{coloured:?}");
        coloured = coloured.replace(code, "");
    }
    assert_eq!(coloured, plain);
}

#[test]
fn a_window_shows_the_place_wherever_it_is() {
    for at_byte in [0, 1, 30, 59, 60, 61, 89, 119, 120, 121, 300, 997, 998] {
        for length in [1, 2, 59, 60, 61, 200, 2000] {
            let text = format!("{}\u{fffd}", "x".repeat(998));
            let shown = at(&text, at_byte..at_byte + length).to_string();
            let lines: Vec<&str> = shown.lines().collect();
            let caret = lines[2].chars().position(|c| c == '^').unwrap();
            let end = lines[2].chars().count();
            assert!(
                caret < lines[1].chars().count() && end <= lines[1].chars().count() + 1,
                "{shown}"
            );
            assert!(lines[1].chars().count() < 140);
        }
    }
}
