//! `outboard profile`: a flame graph of a running server's PHP functions.
//!
//! The workers are found through the admin socket and sampled from outside by the PHP host.

use crate::admin_client::{call, default_socket};
use crate::terminal::{Terminal, show};
use clap::Args;
use outboard_admin_api::status::Get;
use outboard_profile::duration;
use outboard_profile::folded::Folded;
use outboard_profile::process_table::{Pid, ProcessTable};
use outboard_profile::{self as profile, ProfileError, Sampling, flame};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The number of functions shown in the terminal.
const NAMED: usize = 15;

#[derive(Debug, Args)]
pub(crate) struct ProfileArguments {
    /// The admin socket of the server.
    #[arg(long, value_name = "SOCKET")]
    admin: Option<PathBuf>,
    /// Only this app.
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// How long to sample.
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    duration: Duration,
    /// Samples per second of each worker.
    #[arg(long, value_name = "N", default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=1000))]
    hz: u32,
    /// Include time spent waiting for queries, files and other servers.
    #[arg(long)]
    wall: bool,
    /// Also sample the native functions of gateway and workers with perf.
    #[arg(long)]
    native: bool,
    /// The file of the flame graph, a self-contained page.
    #[arg(long, short, value_name = "FILE", default_value = "profile.html")]
    output: PathBuf,
    /// Also write the folded stacks, for other tools.
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
}

pub(crate) fn run(arguments: &ProfileArguments, terminal: &Terminal) -> ExitCode {
    match take(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => terminal.fail(&message, 1),
    }
}

fn take(arguments: &ProfileArguments) -> Result<(), String> {
    let socket = arguments.admin.clone().unwrap_or_else(default_socket);
    let pids = processes(&socket)?;
    let sampling = Sampling { duration: arguments.duration, hz: arguments.hz };
    let zygotes = profile::zygotes(&pids);
    let (php, native) = std::thread::scope(|scope| {
        let native = arguments
            .native
            .then(|| scope.spawn(|| profile::native(&pids, sampling, &std::env::temp_dir())));
        let php = profile::php(&zygotes, sampling);
        (php, native.map(|native| native.join().expect("perf's reader does not panic")))
    });
    let php = chosen(php.map_err(|error| error.to_string())?, arguments);
    let mut graphs = vec![("PHP".to_owned(), flame::graph(&php, "php"))];
    if let Some(native) = native.transpose().map_err(|error: ProfileError| error.to_string())? {
        graphs.push(("Native".to_owned(), flame::graph(&native, "native")));
    }
    let title = format!("Profile of {}", arguments.app.as_deref().unwrap_or("all apps"));
    let about = format!(
        "{} samples over {:?}, {} per second; {}",
        php.samples(),
        arguments.duration,
        arguments.hz,
        if arguments.wall {
            "computing and waiting"
        } else {
            "computing; --wall shows waiting too"
        }
    );
    write(&arguments.output, &flame::page(&title, &about, &graphs))?;
    if let Some(file) = &arguments.folded {
        write(file, &php.text())?;
    }
    show(&format!("{}\nflame graph: {}\n", heaviest(&php), arguments.output.display()));
    Ok(())
}

/// The processes of the server behind a socket.
///
/// # Errors
/// A sentence for the user.
fn processes(socket: &Path) -> Result<Vec<Pid>, String> {
    let status = call(socket, &Get {}).map_err(|error| error.to_string())?;
    let gateway = Pid::try_from(status.pid).map_err(|_| "the server reports no process id")?;
    Ok(ProcessTable::snapshot().tree([gateway]).into_iter().collect())
}

/// The stacks of PHP that computes, in the server behind a socket.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn php_stacks(socket: &Path, sampling: Sampling) -> Result<Folded, String> {
    let zygotes = profile::zygotes(&processes(socket)?);
    let folded = profile::php(&zygotes, sampling).map_err(|error| error.to_string())?;
    Ok(folded.computing())
}

fn chosen(mut folded: Folded, arguments: &ProfileArguments) -> Folded {
    if let Some(app) = &arguments.app {
        folded = folded.of_app(app);
    }
    if arguments.wall { folded } else { folded.computing() }
}

fn heaviest(folded: &Folded) -> String {
    let mut page = format!("{} samples\n\n  itself   below  function\n", folded.samples());
    for share in folded.heaviest(NAMED) {
        let (own, total) = (share.own * 100.0, share.total * 100.0);
        page += &format!("{own:>6.1} %{total:>6.1} %  {}\n", share.name);
    }
    page
}

fn write(file: &std::path::Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}
