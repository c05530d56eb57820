//! Words of other programs on the command line: the tip that says what to type instead.
//!
//! Called with the errors of the arguments before they are printed.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::Path;

/// Commands of other programs.
const COMMANDS: [(&[&str], &str); 9] = [
    (&["version"], "`outboard --version` prints the version"),
    (
        &["validate", "test", "configtest", "verify", "lint", "config-test"],
        "`outboard check FILE` validates a configuration",
    ),
    (
        &["php-server", "server", "up", "dev", "file-server"],
        "`outboard serve DIR` serves a directory",
    ),
    (
        &["ps", "ls", "servers"],
        "`outboard list` lists the named servers, `outboard status` shows one",
    ),
    (&["kill", "down", "quit", "end"], "`outboard stop` stops the server"),
    (&["logs", "log", "tail"], "the log is on standard error, or in the files that [log] names"),
    (
        &["adapt", "convert", "migrate"],
        "`outboard import FILE` translates a configuration of nginx or Apache",
    ),
    (&["clear", "flush", "clean"], "`outboard cache purge --all` empties the page cache"),
    (
        &["update", "self-update"],
        "install the new program, then `outboard upgrade` replaces a running server",
    ),
];

/// Options of other programs, and where they belong.
const OPTIONS: [(&[&str], &str); 12] = [
    (
        &["--port", "-p", "--host", "-H", "--bind", "-b", "--address", "-a", "-S"],
        "write --listen 127.0.0.1:8080",
    ),
    (
        &["--root", "--docroot", "--document-root", "--directory", "-r"],
        "write the directory alone: outboard serve ./my-site",
    ),
    (
        &["--workers", "--worker", "--threads", "--processes", "-w"],
        "write pool.max = 8 in the configuration, which `outboard serve FILE.toml` serves",
    ),
    (
        &["--daemon", "-d", "--daemonize", "--background", "--detach", "-D"],
        "`outboard init NAME` and `outboard start NAME` run a server in the background",
    ),
    (&["--watch", "--debug", "--development", "--reload"], "write --dev"),
    (
        &["--https", "--tls", "--ssl"],
        "write --domain NAME for HTTPS with a certificate that is obtained",
    ),
    (
        &["-v", "--verbose", "-vv", "-q", "--quiet"],
        "`-V` prints the version; log.error.level sets what is logged",
    ),
    (&["-t", "-T", "--test", "--validate"], "`outboard check FILE` validates a configuration"),
    (&["-s", "-k", "--signal"], "`outboard reload` and `outboard stop` are commands"),
    (&["--php", "--php-version"], "write php.version = \"8.3\" in the configuration"),
    (
        &["--memory-limit", "--define"],
        "write php.ini = { memory_limit = \"256M\" } in the configuration",
    ),
    (&["--env", "-e"], "write php.env = { APP_ENV = \"prod\" } in the configuration"),
];

/// The error with a tip, if the word is known.
pub(crate) fn explained(mut error: Error) -> Error {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let known = |table: &[(&[&str], &'static str)], word: &str| {
        table.iter().find(|(words, _)| words.contains(&word)).map(|(_, tip)| (*tip).to_owned())
    };
    let (word, tip) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = word(ContextKind::InvalidSubcommand);
            let tip =
                word.as_deref().and_then(|word| known(&COMMANDS, word).or_else(|| path(word)));
            (word, tip)
        }
        ErrorKind::UnknownArgument => {
            let word = word(ContextKind::InvalidArg);
            let tip =
                word.as_deref().and_then(|word| argument(word, &usage, known(&OPTIONS, word)));
            (word, tip)
        }
        _ => (None, None),
    };
    if let (Some(_), Some(tip)) = (word, tip) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// A path in place of a command.
fn path(word: &str) -> Option<String> {
    let is_path = word.contains('/') || word == "." || Path::new(word).extension().is_some();
    is_path.then(|| format!("`outboard serve {word}` serves it"))
}

/// `usage` tells the command.
fn argument(word: &str, usage: &str, known: Option<String>) -> Option<String> {
    let of = |command: &str| usage.contains(&format!("outboard {command}"));
    let is_served = of("serve") || of("run");
    match word {
        "--config" | "-c" if of("start") || of("restart") => {
            Some("a named server has its file in outboard.d; `outboard serve --config FILE` serves any other".to_owned())
        }
        "--config" | "-c" if of("reload") || of("stop") || of("status") || of("upgrade") => {
            Some("a running server knows its file: name the server, or its socket by --admin SOCKET".to_owned())
        }
        _ if word.starts_with('-') && (is_served || usage.contains("outboard [OPTIONS] <COMMAND>")) => known,
        _ if word.starts_with('-') => None,
        name => ["dashboard", "bans", "profile", "certificates", "upstreams", "cache", "opcache"]
            .iter()
            .any(|command| of(command))
            .then(|| {
                format!("to choose the server `{name}`, write --admin SOCKET, which `outboard list --json` names")
            }),
    }
}
