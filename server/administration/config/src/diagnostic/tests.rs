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
