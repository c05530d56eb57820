//! One variant of `lab ab`: parsed from the command line and started as a [`Stack`].

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use clap::ValueEnum;

use crate::callgrind::Callgrind;
use crate::catalog::Kind;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::lab::Lab;
use crate::listener;
use crate::outboard::{Outboard, Setup};
use crate::request_spec::HOST;
use crate::stack::Stack;
use crate::system::free_address;

/// A server to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variant {
    /// A server that already runs.
    Url {
        /// Host and port.
        authority: String,
        /// The requested path.
        path: String,
    },
    /// One of the lab's stacks, serving the directory.
    Stack(Kind),
    /// An outboard binary, serving the directory.
    Binary(PathBuf),
    /// A shell command that listens on `{port}` and serves `{root}`.
    Command(String),
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { authority, path } => write!(f, "http://{authority}{path}"),
            Self::Stack(kind) => f.write_str(&kind.name()),
            Self::Binary(binary) => binary.display().fmt(f),
            Self::Command(command) => f.write_str(command),
        }
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Some(rest) = text.strip_prefix("http://") {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let port = if authority.contains(':') { "" } else { ":80" };
            return Ok(Self::Url {
                authority: format!("{authority}{port}"),
                path: format!("/{path}"),
            });
        }
        if text.starts_with("https://") {
            return Err("only http:// can be measured".into());
        }
        if text.contains("{port}") {
            return Ok(Self::Command(text.into()));
        }
        if let Ok(kind) = Kind::from_str(text, false) {
            return Ok(Self::Stack(kind));
        }
        if Path::new(text).is_file() {
            return Ok(Self::Binary(text.into()));
        }
        Err("neither http://…, a name of `outboard lab stacks`, an outboard binary, nor a \
             command with {port} in it"
            .into())
    }
}

impl Variant {
    /// Starts or finds it. Its stack is called `name`.
    pub fn start(&self, lab: &mut Lab, name: &'static str, root: &Path) -> Result<Stack> {
        lab.variant = name;
        let stack = match self {
            Self::Url { authority, .. } => running(lab, name, authority),
            Self::Stack(kind) => kind.start(lab, root),
            Self::Binary(binary) => {
                let setup = Setup::classic(lab, root);
                Ok(Outboard::launch_binary(lab, &setup, binary)?.stack)
            }
            Self::Command(command) => by_command(lab, name, command, root),
        };
        lab.variant = "";
        Ok(Stack { name, ..stack? })
    }

    /// Host and path to request.
    pub fn target<'a>(&'a self, path: &'a str) -> (&'a str, &'a str) {
        match self {
            Self::Url { authority, path } => (authority, path),
            _ => (HOST, path),
        }
    }
}

/// Processes on this machine are found by their port. Those on other machines are unknown, and then
/// there is no CPU time.
fn running(lab: &mut Lab, name: &str, authority: &str) -> Result<Stack> {
    let unknown = || Error::Unexpected { who: authority.into(), what: "no such address".into() };
    let address: SocketAddr = authority
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(unknown)?;
    let group = Group::attached(lab, name, listener::owners(address));
    Stack { name: "", address, group }.await_response()
}

fn by_command(lab: &mut Lab, name: &str, command: &str, root: &Path) -> Result<Stack> {
    let address = free_address()?;
    let root = root.display().to_string();
    let command = command.replace("{port}", &address.port().to_string()).replace("{root}", &root);
    let mut group = Group::new(lab, name)?;
    let mut shell = Command::new("/bin/sh");
    // Valgrind does not follow the shell into the program.
    let valgrind = lab.callgrind.take();
    let prefix = valgrind.as_ref().map_or(String::new(), Callgrind::prefix);
    shell.arg("-c").arg(format!("exec {prefix}{command}"));
    let started = group.start(lab, &shell);
    lab.callgrind = valgrind;
    started?;
    Stack { name: "", address, group }.await_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_recognised_by_its_form() {
        let url = |authority: &str, path: &str| Variant::Url {
            authority: authority.into(),
            path: path.into(),
        };
        assert_eq!("http://localhost:8080/a?b=1".parse(), Ok(url("localhost:8080", "/a?b=1")));
        assert_eq!("http://localhost".parse(), Ok(url("localhost:80", "/")));
        assert_eq!("nginx-fpm".parse(), Ok(Variant::Stack(Kind::NginxFpm)));
        assert_eq!("/bin/sh".parse(), Ok(Variant::Binary("/bin/sh".into())));
        let command = "my-server --port {port}";
        assert_eq!(command.parse(), Ok(Variant::Command(command.into())));
        assert!("no-such-thing".parse::<Variant>().is_err());
        assert!("https://localhost/".parse::<Variant>().is_err());
    }
}
