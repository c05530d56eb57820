//! Redis, for comparison with the entity store: its server with an append-only file.
//!
//! The project's generator sends the load in the Redis protocol. Invariant: the server's CPU is
//! measured as that of every stack.

use std::net::TcpStream;
use std::process::Command;

use crate::error::Result;
use crate::group::Group;
use crate::lab::Lab;
use crate::stack::Stack;
use crate::system::{free_address, program};

/// The name in tables.
pub const NAME: &str = "redis";

/// A server that syncs its file every second.
pub fn start(lab: &mut Lab) -> Result<Stack> {
    let binary = program(&["/usr/bin/redis-server"], "redis-server")?;
    let (directory, address) = (lab.directory(NAME)?, free_address()?);
    let mut command = Command::new(binary);
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]);
    command.arg("--dir").arg(&directory);
    let mut group = Group::new(lab, NAME)?;
    group.start(lab, &command)?;
    group.await_start(|| TcpStream::connect(address).is_ok())?;
    Ok(Stack { name: NAME, address, group })
}
