//! The null server as a stack: this binary, which sends the same few bytes for every request. The
//! CPU that a generator spends on it is the generator's own cost.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;

use outboard_load::NullServer;

use crate::error::{Result, ResultExt};
use crate::group::Group;
use crate::lab::Lab;
use crate::stack::Stack;
use crate::system::free_address;

/// The command of this binary that is the null server, followed by its address.
pub const COMMAND: &str = "null";

/// Starts it in a process of its own.
pub fn server(lab: &mut Lab) -> Result<Stack> {
    let name = "null server";
    let mut group = Group::new(lab, "null")?;
    let address = free_address()?;
    // Not `/proc/self/exe`: a group starts its programs through a shell.
    let mut command = Command::new(std::env::current_exe().context(|| "find this program".into())?);
    command.arg(COMMAND).arg(address.to_string());
    group.start(lab, &command)?;
    // It never closes a connection, so waiting for the end of a response would not end.
    group.await_start(|| TcpStream::connect(address).is_ok())?;
    Ok(Stack { name, address, group })
}

/// Runs the null server until the process is ended.
pub fn run(address: SocketAddr) -> Result<()> {
    let _server = NullServer::start_at(address).context(|| format!("listen on {address}"))?;
    loop {
        thread::park();
    }
}
