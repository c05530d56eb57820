//! `outboard upstreams`: the servers that share the requests of routes, and which of them get requests.

use crate::admin;
use crate::admin::AdminArguments;
use crate::terminal::Terminal;
use clap::{Args, Subcommand};
use outboard_admin_api::status::{UpstreamGroup, UpstreamServer};
use outboard_admin_api::upstreams::{Changed, Drain, Enable, List};
use std::fmt::{self, Write as _};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct UpstreamsArguments {
    #[command(subcommand)]
    pub(crate) action: Option<UpstreamsAction>,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UpstreamsAction {
    /// Send no new requests to a server; those in progress finish. A reload does not change that.
    Drain(UpstreamServerArguments),
    /// Send requests to a drained server again.
    Enable(UpstreamServerArguments),
}

#[derive(Debug, Args)]
pub(crate) struct UpstreamServerArguments {
    /// The name of the upstream.
    pub(crate) upstream: String,
    /// The server as configured, or as `outboard upstreams` names it.
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

pub(crate) fn run(arguments: &UpstreamsArguments, terminal: &Terminal) -> ExitCode {
    match &arguments.action {
        None => admin::run(&arguments.admin, terminal, &List {}, |page, list| {
            if list.upstreams.is_empty() {
                return writeln!(page, "no upstream is configured");
            }
            write(page, &list.upstreams)
        }),
        Some(UpstreamsAction::Drain(which)) => {
            let drain = Drain { upstream: which.upstream.clone(), server: which.server.clone() };
            admin::run(&which.admin, terminal, &drain, |page, changed| {
                write_changed(page, changed, "drained")
            })
        }
        Some(UpstreamsAction::Enable(which)) => {
            let enable = Enable { upstream: which.upstream.clone(), server: which.server.clone() };
            admin::run(&which.admin, terminal, &enable, |page, changed| {
                write_changed(page, changed, "enabled")
            })
        }
    }
}

fn write_changed(page: &mut String, changed: &Changed, what: &str) -> fmt::Result {
    for server in &changed.servers {
        writeln!(page, "{what} {server}")?;
    }
    writeln!(page, "{} requests in progress", changed.under_way)
}

/// A table for each upstream.
pub(crate) fn write(page: &mut String, groups: &[UpstreamGroup]) -> fmt::Result {
    for group in groups {
        let open = if group.open { "  (circuit breaker open)" } else { "" };
        writeln!(page, "upstream {}{open}", group.name)?;
        writeln!(
            page,
            "  {:<40} {:<8} {:>6} {:>9} {:>12} {:>9} {:>11}",
            "SERVER", "STATE", "WEIGHT", "REQUESTS", "IN PROGRESS", "FAILURES", "RECENT"
        )?;
        group.servers.iter().try_for_each(|server| write_server(page, server))?;
    }
    Ok(())
}

fn write_server(page: &mut String, server: &UpstreamServer) -> fmt::Result {
    let UpstreamServer { weight, requests, under_way, failures, recent_us, .. } = server;
    let name = match server.backup {
        true => format!("{} backup", server.server),
        false => server.server.clone(),
    };
    let recent = format!("{}.{:02} ms", recent_us / 1_000, recent_us % 1_000 / 10);
    writeln!(
        page,
        "  {name:<40} {:<8} {weight:>6} {requests:>9} {under_way:>12} {failures:>9} {recent:>11}",
        server.state
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_line_with_its_state() {
        let server = UpstreamServer {
            server: "http://10.0.0.1:80".to_owned(),
            state: "ejected".to_owned(),
            weight: 2,
            backup: true,
            under_way: 3,
            requests: 40,
            failures: 5,
            recent_us: 1_230,
            total_us: 0,
        };
        let group = UpstreamGroup { name: "api".to_owned(), open: true, servers: vec![server] };
        let mut page = String::new();
        write(&mut page, &[group]).unwrap();
        assert!(page.starts_with("upstream api  (circuit breaker open)\n"), "{page}");
        let words: Vec<&str> = page.lines().nth(2).unwrap().split_whitespace().collect();
        let expected =
            ["http://10.0.0.1:80", "backup", "ejected", "2", "40", "3", "5", "1.23", "ms"];
        assert_eq!(words, expected);
    }
}
