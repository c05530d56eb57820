//! `outboard trust`: has this machine trust the local authority, or not any more.
//!
//! The certificate is added to the list of the system, which needs root, and to the NSS databases of this
//! user's browsers. What a store does not permit is reported, and the other stores are changed all the same.

use crate::terminal::{Terminal, say};
use clap::Args;
use outboard_certificates::{LocalAuthority, default_directory};
use rustix::process::geteuid;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Do not trust it any more.
    #[arg(long)]
    pub(crate) remove: bool,
    /// The directory of certificates [default: /var/lib/outboard/certificates for root, otherwise
    /// ~/.local/share/outboard/certificates].
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
}

/// Where Debian expects the authorities of an administrator (update-ca-certificates(8)).
const SYSTEM_DIR: &str = "/usr/local/share/ca-certificates";
const SYSTEM_FILE: &str = "outboard-local-authority.crt";
/// The name in lists of certificates.
const NICKNAME: &str = "Outboard local authority";

pub(crate) fn run(arguments: &TrustArguments, terminal: &Terminal) -> ExitCode {
    let Some(directory) = arguments.storage.clone().or_else(default_directory) else {
        return terminal.fail("there is no home directory: use --storage", 2);
    };
    let authority = match LocalAuthority::open(&directory) {
        Ok(authority) => authority,
        Err(why) => return terminal.fail(&why, 1),
    };
    let certificate = authority.certificate_file();
    say!("local authority: {}", certificate.display());
    let outcomes = match arguments.remove {
        false => [trust_by_system(certificate, &directory), trust_by_browsers(certificate)],
        true => [distrust_by_system(), distrust_by_browsers()],
    };
    let mut code = ExitCode::SUCCESS;
    for outcome in outcomes {
        match outcome {
            Ok(text) => say!("{text}"),
            Err(why) => code = terminal.fail(&why, 1),
        }
    }
    code
}

fn trust_by_system(certificate: &Path, directory: &Path) -> Result<String, String> {
    if !geteuid().is_root() {
        let directory = directory.display();
        return Err(format!("the system: needs root: sudo outboard trust --storage {directory}"));
    }
    let target = Path::new(SYSTEM_DIR).join(SYSTEM_FILE);
    let failed = |error| format!("the system: {}: {error}", target.display());
    fs::create_dir_all(SYSTEM_DIR).map_err(failed)?;
    fs::copy(certificate, &target).map_err(failed)?;
    // The directory of certificates is private, but this list is for every user.
    set_readable(&target).map_err(failed)?;
    update_system()?;
    Ok("trusted by the system".to_owned())
}

fn distrust_by_system() -> Result<String, String> {
    let target = Path::new(SYSTEM_DIR).join(SYSTEM_FILE);
    match fs::remove_file(&target) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok("the system did not trust it".to_owned());
        }
        removed => removed.map_err(|error| format!("the system: {}: {error}", target.display()))?,
    }
    update_system()?;
    Ok("not trusted by the system any more".to_owned())
}

fn set_readable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

fn update_system() -> Result<(), String> {
    let output = Command::new("update-ca-certificates").output();
    succeeded("the system: update-ca-certificates", output).map(drop)
}

fn trust_by_browsers(certificate: &Path) -> Result<String, String> {
    for_each_database(&["-A", "-t", "C,,", "-i", &certificate.to_string_lossy()], "trusted by")
}

fn distrust_by_browsers() -> Result<String, String> {
    for_each_database(&["-D"], "not trusted any more by")
}

/// Runs certutil(1) for each database of this user.
fn for_each_database(action: &[&str], what: &str) -> Result<String, String> {
    let databases = databases();
    if databases.is_empty() {
        return Ok("no browser of this user has a database of certificates".to_owned());
    }
    let mut changed = 0;
    for database in &databases {
        let mut command = Command::new("certutil");
        command.arg("-d").arg(format!("sql:{}", database.display())).args(["-n", NICKNAME]);
        match command.args(action).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err("browsers: install certutil (package libnss3-tools)".to_owned());
            }
            // A database that does not know it has nothing to forget.
            Ok(output) if action == ["-D"] && !output.status.success() => {}
            output => {
                succeeded(&format!("browsers: certutil: {}", database.display()), output)?;
                changed += 1;
            }
        }
    }
    Ok(format!("{what} {changed} of {} databases of browsers", databases.len()))
}

/// The shared database of Chromium, and those of the profiles of Firefox.
fn databases() -> Vec<PathBuf> {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else { return Vec::new() };
    let profiles = [".mozilla/firefox", "snap/firefox/common/.mozilla/firefox"];
    let profiles = profiles.iter().flat_map(|part| fs::read_dir(home.join(part)).into_iter());
    let profiles = profiles.flatten().flatten().map(|entry| entry.path());
    let all = std::iter::once(home.join(".pki/nssdb")).chain(profiles);
    all.filter(|directory| directory.join("cert9.db").exists()).collect()
}

fn succeeded(what: &str, output: std::io::Result<Output>) -> Result<Output, String> {
    let output = output.map_err(|error| format!("{what}: {error}"))?;
    match output.status.success() {
        true => Ok(output),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!("{what}: {}: {}", output.status, text.trim()))
        }
    }
}
