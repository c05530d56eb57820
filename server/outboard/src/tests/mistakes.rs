//! The mistakes of the command line, and those that only this machine tells, of the table in the crate of the
//! configuration.

use crate::{Outboard, host_machine, mistyped};
use clap::Parser;
use outboard_config::Config;
use std::path::Path;

const TABLE: &str = include_str!("../../../administration/config/tests/mistakes.txt");

#[test]
fn each_mistake_on_the_command_line_gets_its_tip() {
    let typed = TABLE.split("\n> ").filter_map(|entry| {
        let (head, text) = entry.split_once('\n')?;
        let (command, file) = text.strip_prefix("$ ")?.split_once('\n')?;
        Some((head.split_once(": ")?, command, file.split("\n## ").next()?.trim_end()))
    });
    let mut count = 0;
    for ((line, words), command, file) in typed {
        let said = match file {
            "" => {
                let error = Outboard::try_parse_from(command.split(' ')).unwrap_err();
                mistyped::explained(error).to_string()
            }
            file => {
                let app = if file.contains("app") { "" } else { "[app.site]\nroot = \"public\"\n" };
                let text = format!("{file}\n{app}").replace("\"public\"", "\"/tmp\"");
                let config = Config::parse(&text, Path::new("/tmp/outboard.toml")).unwrap();
                host_machine::check(&config, Path::new("outboard.toml")).unwrap_err().to_string()
            }
        };
        assert!(words.split(" | ").all(|words| said.contains(words)), "{command}\n{words}\n{said}");
        let at = format!("outboard.toml:{line}:");
        assert!(line == "usage" || said.contains(&at), "{command}: not in line {line}\n{said}");
        count += 1;
    }
    assert!(count > 25, "{count}");
}

#[test]
fn a_tip_replaces_a_guess() {
    let said = |words: &str| {
        let error = Outboard::try_parse_from(words.split(' ')).unwrap_err();
        mistyped::explained(error).to_string()
    };
    assert!(!said("outboard serve --port 80").contains("as a value"));
    assert!(!said("outboard validate").contains("similar"));
    assert!(said("outboard statsu").contains("'status'"), "a misspelling");
}
