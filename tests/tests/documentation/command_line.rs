//! `docs/reference/cli.md`: the help text of every command.

use crate::{assert_generated, read, renewed};
use outboard_e2e::Server;
use std::fmt::Write;
use std::process::{Command, Stdio};

/// Commands whose help is that of another program, or of the parser of arguments.
const OF_OTHERS: [&str; 3] = ["bench", "help", "lab"];

/// Without a terminal the text is 100 columns wide.
fn help(command: &[String]) -> String {
    let mut program = Command::new(Server::binary());
    program.args(command).arg("--help").env_remove("COLUMNS").stdin(Stdio::null());
    let output = program.output().expect("the binary is there");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("help is text")
}

/// The names below `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let list = list.lines().take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The help without the options that every command has, and without spaces at the ends of lines.
fn own_part(help: &str) -> String {
    let mut out = String::new();
    let mut is_left_out = false;
    for line in help.lines().map(str::trim_end) {
        let is_option = line.trim_start().starts_with('-') && !line.starts_with("          ");
        let is_section = !line.is_empty() && !line.starts_with(' ');
        if is_option || is_section {
            is_left_out = ["--color <WHEN>", "-h, --help"].iter().any(|one| line.contains(one));
        }
        if !is_left_out {
            let _ = writeln!(out, "{line}");
        }
    }
    let out = out.trim_end();
    out.strip_suffix("Options:").unwrap_or(out).trim_end().to_owned()
}

fn commands(path: &[String], page: &mut String) {
    let help = help(path);
    if !path.is_empty() {
        let _ = writeln!(page, "## outboard {}\n", path.join(" "));
        let _ = writeln!(page, "```text\n{}\n```\n", own_part(&help));
    }
    for name in subcommands(&help).iter().filter(|name| !OF_OTHERS.contains(&name.as_str())) {
        commands(&[path, std::slice::from_ref(name)].concat(), page);
    }
}

#[test]
fn the_reference_of_commands_is_up_to_date() {
    let page = renewed(&read("cli.md"), "commands", |_| {
        let mut page = String::from("\n");
        commands(&[], &mut page);
        page
    });
    assert!(page.matches("\n## outboard ").count() > 40, "{page}");
    assert_generated("cli.md", &page);
}
