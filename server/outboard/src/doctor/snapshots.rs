//! `outboard doctor snapshots`: what the scripts of a running server read of a request before their snapshots,
//! and what that means.
//!
//! Called by [`super`]. The exit code is 1 if a script that asks for a snapshot has none.

use crate::admin::AdminArguments;
use crate::admin_client::{call, default_socket};
use crate::terminal::{Terminal, say};
use outboard_admin_api::status::{Get, RequestRead, SnapshotScript};
use std::process::ExitCode;

pub(super) fn run(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    let socket = arguments.admin.clone().unwrap_or_else(default_socket);
    let scripts = match call(&socket, &Get {}) {
        Ok(status) => status.snapshots,
        Err(error) => return terminal.fail(&error.to_string(), 2),
    };
    if arguments.json {
        say!("{:#}", serde_json::json!({ "snapshots": scripts }));
    } else {
        scripts.iter().for_each(|script| say!("{}", text(script, terminal)));
        if scripts.is_empty() {
            say!("no script has called Outboard\\snapshot() yet");
        }
    }
    ExitCode::from(u8::from(scripts.iter().any(|script| script.refused_because.is_some())))
}

fn text(script: &SnapshotScript, terminal: &Terminal) -> String {
    let title = terminal.bold(&format!("{} {}", script.app, script.script));
    let state = match (&script.refused_because, script.snapshots) {
        (Some(why), _) => format!("no snapshot: {why}"),
        (None, 1) => "1 snapshot".to_owned(),
        (None, count) => format!("{count} snapshots"),
    };
    let reads = script.reads.iter().map(|read| format!("\n  {}", meaning(read)));
    format!("{title}: {state}{}", reads.collect::<String>())
}

/// A read, and which requests can be handled from the snapshot.
fn meaning(read: &RequestRead) -> String {
    let place = format!("{}:{}", read.file, read.line);
    let (variable, requests) = match read.name.split_once('.') {
        Some((array, entry)) => (
            format!("${array}['{entry}']"),
            "requests with another value are handled without this snapshot".to_owned(),
        ),
        None => (
            format!("${}", read.name),
            match read.name.as_str() {
                "_GET" => "requests with a query are handled without a snapshot",
                "_POST" | "_FILES" => "requests with a body are handled without a snapshot",
                "_COOKIE" => "requests with cookies are handled without a snapshot",
                "_REQUEST" => "requests with a query, a body or cookies are handled without one",
                _ => "no request can be handled from a snapshot",
            }
            .to_owned(),
        ),
    };
    format!(
        "{place} reads {variable}: {requests}\n    move it below Outboard\\snapshot(), or, if the code there reads it \
         again, name it: Outboard\\snapshot(['{}'])",
        read.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_read_says_which_requests_it_concerns() {
        let said = |name: &str| {
            meaning(&RequestRead { name: name.into(), file: "/www/a.php".into(), line: 7 })
        };
        assert!(said("_COOKIE.lang").starts_with("/www/a.php:7 reads $_COOKIE['lang']: "));
        assert!(said("_COOKIE.lang").contains("snapshot(['_COOKIE.lang'])"));
        assert!(said("_GET").contains("with a query"));
        assert!(said("_SERVER").contains("no request can be"));
    }
}
