//! The table of mistakes: what `outboard check` says of each in a file. Those of the command line are typed by
//! the program's own tests.

use outboard_config::{Config, Diagnostic};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const TABLE: &str = include_str!("mistakes.txt");
const APP: &str = "[app.site]\nroot = \"public\"\n";

/// A mistake, and what is said of it.
struct Mistake<'t> {
    line: usize,
    words: Vec<&'t str>,
    text: String,
}

fn mistakes() -> Vec<Mistake<'static>> {
    let all = TABLE.split("\n> ").skip(1).map(|entry| {
        let (head, text) = entry.split_once('\n').unwrap();
        let (line, words) = head.split_once(": ").unwrap();
        let text = text.split("\n## ").next().unwrap().trim_end();
        let app = if text.contains("app") { "" } else { APP };
        Mistake {
            line: line.parse().unwrap_or(0),
            words: words.split(" | ").collect(),
            text: format!("{text}\n{app}"),
        }
    });
    all.filter(|one| !one.text.starts_with("$ ")).collect()
}

/// A directory with what the files name.
fn directory() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("outboard-mistakes-{}", std::process::id()));
    fs::create_dir_all(directory.join("public")).unwrap();
    fs::write(directory.join("public/index.php"), "").unwrap();
    directory
}

fn is_said(mistake: &Mistake<'_>, error: &Diagnostic) -> bool {
    let said = format!("{} / {}", error.message, error.hint.as_deref().unwrap_or_default());
    error.position.as_ref().map_or(0, |at| at.line) == mistake.line
        && mistake.words.iter().all(|words| said.contains(words))
}

#[test]
fn every_mistake_gets_its_hint() {
    let directory = directory();
    let mut wrong = String::new();
    let all = mistakes();
    for mistake in &all {
        let said = match Config::parse(&mistake.text, &directory.join("outboard.toml")) {
            Ok(_) => "it is valid\n".to_owned(),
            Err(errors) if is_said(mistake, errors.iter().next().unwrap()) => continue,
            Err(errors) => errors.to_string(),
        };
        let _ = writeln!(
            wrong,
            "{}\nexpected: {}: {:?}\n{said}",
            mistake.text, mistake.line, mistake.words
        );
    }
    fs::remove_dir_all(&directory).unwrap();
    assert!(all.len() > 110, "{}", all.len());
    assert!(wrong.is_empty(), "{wrong}");
}
