//! `outboard dashboard`: serves the dashboard of a running server on a port of this machine.
//!
//! The page and its data are those of the admin socket; flame graphs are taken here, with the rights of the
//! user of this command. Invariants: only 127.0.0.1 is bound; data goes to browsers that have the URL's token
//! or were given a key for it.

mod connection;
mod keys;

use crate::admin_client::{call, default_socket};
use crate::terminal::{Terminal, say};
use clap::Args;
use connection::Service;
use keys::Keys;
use outboard_admin_api::status::Get;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct DashboardArguments {
    /// The admin socket of the server.
    #[arg(long, value_name = "SOCKET")]
    admin: Option<PathBuf>,
    /// The port [default: a free one].
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Open the page in the browser, by xdg-open.
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(arguments: &DashboardArguments, terminal: &Terminal) -> ExitCode {
    match serve(arguments, terminal) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => terminal.fail(&message, 1),
    }
}

fn serve(arguments: &DashboardArguments, terminal: &Terminal) -> Result<(), String> {
    let socket = arguments.admin.clone().unwrap_or_else(default_socket);
    call(&socket, &Get {}).map_err(|error| error.to_string())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port));
    let listener = listener.map_err(|error| format!("port {}: {error}", arguments.port))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let keys = Keys::new().map_err(|error| format!("no random bytes: {error}"))?;
    let url = format!("http://{address}/#token={}", keys.token());
    say!("dashboard: {}", terminal.bold(&url));
    say!(
        "{}",
        terminal.dim("The URL is valid once. Ctrl-C ends the dashboard; the server goes on.")
    );
    if arguments.open
        && let Err(error) = open(&url)
    {
        eprintln!("cannot open the browser: {error}");
    }
    Arc::new(Service::new(socket, keys)).accept(&listener).map_err(|error| error.to_string())
}

/// Opens the browser by a file that only this user can read: arguments of processes are visible to all.
fn open(url: &str) -> io::Result<()> {
    let directory =
        std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let file = directory.join(format!("outboard-dashboard-{}.html", std::process::id()));
    let page = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\">\n");
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    created?.write_all(page.as_bytes())?;
    let mut browser = Command::new("xdg-open");
    browser.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match browser.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("xdg-open: {status}"))),
        Err(error) => Err(io::Error::new(error.kind(), format!("xdg-open: {error}"))),
    }
}
