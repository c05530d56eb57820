//! The null server as a stack: this same binary, answering with the same few bytes whatever is
//! asked. What a generator spends on it is the generator's own.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;

use outboard_load::NullServer;

use crate::error::{Doing, Result};
use crate::group::Group;
use crate::lab::{Lab, free_address};
use crate::stack::Stack;

/// The words on the command line that make this binary the null server, before its address.
pub const COMMAND: [&str; 2] = ["lab", "null"];

/// Starts it in a process of its own.
pub fn server(lab: &mut Lab) -> Result<Stack> {
    let name = "null server";
    let mut group = Group::new(lab, "null")?;
    let address = free_address()?;
    // Not `/proc/self/exe`: a group starts its programs through a shell.
    let mut command = Command::new(std::env::current_exe().doing(|| "find this program".into())?);
    command.args(COMMAND).arg(address.to_string());
    group.start(lab, &command)?;
    // It never closes a connection, so an answer has no end for whoever waits for that.
    group.await_start(|| TcpStream::connect(address).is_ok())?;
    Ok(Stack { name, address, group })
}

/// Is the null server until the process is ended.
pub fn run(address: SocketAddr) -> Result<()> {
    let _server = NullServer::start_at(address).doing(|| format!("listen on {address}"))?;
    loop {
        thread::park();
    }
}
