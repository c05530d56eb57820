//! A Redis or a Redis cluster, as one thread sees it: each command goes to the node that has its
//! slot, also while slots move.
//!
//! Used by [`super::records`]. Commands for a node are sent together and their replies read in
//! order. Invariants: a connection is reused only if every reply was read; a command that may
//! succeed later returns as such at once.

use super::slots::{Redirection, Slots, redirection};
use super::wire::{Connection, command};
use crate::settings::RedisSettings;
use outboard_resp::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

/// How often a command is redirected: to the node that imports its slot, and once more if the slot
/// has arrived there.
const REDIRECTIONS_MAX: usize = 4;
/// Errors after which a command may succeed later (Redis Cluster specification, `server.c`).
const RETRYABLE: [&str; 6] =
    ["TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "UNBLOCKED"];
/// The script of all writes.
const SCRIPT: &[u8] = include_bytes!("write.lua");

/// A command and its slot.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) slot: u16,
    pub(crate) operation: Operation,
    /// How many nodes have to confirm it, the primary included.
    pub(crate) copies: u32,
}

/// The form of a command.
#[derive(Debug)]
pub(crate) enum Operation {
    /// Encoded.
    Command(Vec<u8>),
    /// A call of the script, with its key and arguments.
    Script(Vec<Vec<u8>>),
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandError {
    /// It may succeed later.
    Retry(String),
    /// It succeeded on too few nodes.
    TooFewCopies(u32),
    /// It failed, with this message of Redis.
    Refused(String),
}

/// Connections to the nodes, and the known slots.
#[derive(Debug)]
pub(crate) struct Cluster {
    settings: Arc<RedisSettings>,
    slots: Slots,
    is_stale: bool,
    connections: HashMap<String, Connection>,
    /// The hash of the script, as Redis computed it.
    script: Vec<u8>,
}

/// The index of a command, and whether it follows `ASKING`, as its slot is being imported.
type SentCommand = (usize, bool);

impl Cluster {
    /// A cluster without connections.
    pub(crate) fn new(settings: Arc<RedisSettings>) -> Self {
        let (slots, connections) = (Slots::default(), HashMap::new());
        Self { settings, slots, is_stale: true, connections, script: Vec::new() }
    }

    /// Runs commands; one result for each, in order.
    pub(crate) fn run(&mut self, commands: &[Command]) -> Vec<Result<Value, CommandError>> {
        let why = match self.refresh_slots() {
            Ok(()) => "it was redirected too often".to_owned(),
            Err(error) => error.to_string(),
        };
        let mut results = vec![Err(CommandError::Retry(why)); commands.len()];
        let mut open: Vec<(usize, Option<Redirection>)> =
            (0..commands.len()).map(|index| (index, None)).collect();
        for _ in 0..REDIRECTIONS_MAX {
            if open.is_empty() || self.has_no_slots() {
                break;
            }
            let mut round = Round { commands, results: &mut results, redirected: Vec::new() };
            let by_node = self.by_node(std::mem::take(&mut open), &mut round);
            let mut sent = Vec::new();
            for (address, batch) in by_node {
                match self.send(&address, &batch, commands) {
                    Ok(connection) => sent.push((address, batch, connection)),
                    Err(error) => self.on_node_lost(&address, &error, &batch, &mut round),
                }
            }
            for (address, batch, connection) in sent {
                self.receive(address, &batch, connection, &mut round);
            }
            open = round.redirected;
        }
        results
    }

    /// The addresses of the primaries.
    ///
    /// # Errors
    /// No node replies.
    pub(crate) fn primaries(&mut self) -> io::Result<Vec<String>> {
        self.refresh_slots()?;
        Ok(self.slots.primaries())
    }

    /// Sends one command to a node.
    ///
    /// # Errors
    /// The node does not reply, or replies with an error.
    pub(crate) fn ask(&mut self, address: &str, bytes: &[u8]) -> io::Result<Value> {
        let asked = self.connection(address).and_then(|mut connection| {
            let reply = connection.ask(bytes)?;
            Ok((connection, reply))
        });
        self.is_stale |= asked.is_err();
        let (connection, reply) = asked?;
        self.connections.insert(address.to_owned(), connection);
        match reply {
            Value::Error(why) => Err(io::Error::other(format!("{address}: {why}"))),
            reply => Ok(reply),
        }
    }

    fn has_no_slots(&self) -> bool {
        self.slots.owner(0).is_none() && self.slots.primaries().is_empty()
    }

    /// Reads the slots anew, if they may have changed.
    fn refresh_slots(&mut self) -> io::Result<()> {
        if !self.is_stale {
            return Ok(());
        }
        let mut known: Vec<String> = self.connections.keys().cloned().collect();
        known.extend(self.slots.primaries());
        known.extend(self.settings.nodes.iter().cloned());
        let mut asked = BTreeSet::new();
        let mut last = io::Error::other("no Redis node is configured");
        for address in known {
            if !asked.insert(address.clone()) {
                continue;
            }
            match self.ask(&address, &command(&[b"CLUSTER", b"SLOTS"])) {
                Ok(reply) => {
                    let Some(slots) = Slots::read(reply, &address) else { continue };
                    self.slots = slots;
                }
                Err(error) if error.to_string().contains("cluster support disabled") => {
                    self.slots = Slots::of_one(&address);
                }
                Err(error) => {
                    last = error;
                    continue;
                }
            }
            self.is_stale = false;
            return Ok(());
        }
        Err(last)
    }

    /// Groups commands by node.
    fn by_node(
        &mut self,
        open: Vec<(usize, Option<Redirection>)>,
        round: &mut Round<'_>,
    ) -> BTreeMap<String, Vec<SentCommand>> {
        let mut by_node: BTreeMap<String, Vec<SentCommand>> = BTreeMap::new();
        for (index, redirection) in open {
            let slot = round.commands[index].slot;
            let (address, is_asking) = match redirection {
                Some(redirection) => (redirection.address, redirection.is_asking),
                None => match self.slots.owner(slot) {
                    Some(address) => (address.to_owned(), false),
                    None => {
                        self.is_stale = true;
                        let why = format!("no node has slot {slot}");
                        round.results[index] = Err(CommandError::Retry(why));
                        continue;
                    }
                },
            };
            by_node.entry(address).or_default().push((index, is_asking));
        }
        by_node
    }

    /// Takes an idle connection, or opens one.
    fn connection(&mut self, address: &str) -> io::Result<Connection> {
        if let Some(connection) = self.connections.remove(address) {
            return Ok(connection);
        }
        let mut connection = Connection::open(address, &self.settings)?;
        match connection.ask(&command(&[b"SCRIPT", b"LOAD", SCRIPT]))? {
            Value::Bytes(script) => self.script = script,
            Value::Error(why) => return Err(io::Error::other(why)),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(connection)
    }

    fn send(
        &mut self,
        address: &str,
        batch: &[SentCommand],
        commands: &[Command],
    ) -> io::Result<Connection> {
        let mut connection = self.connection(address)?;
        let mut bytes = Vec::new();
        for (index, is_asking) in batch {
            if *is_asking {
                bytes.extend(command(&[b"ASKING"]));
            }
            match &commands[*index].operation {
                Operation::Command(command) => bytes.extend_from_slice(command),
                Operation::Script(arguments) => {
                    let mut parts: Vec<&[u8]> = vec![b"EVALSHA", &self.script, b"1"];
                    parts.extend(arguments.iter().map(Vec::as_slice));
                    bytes.extend(command(&parts));
                }
            }
        }
        let copies = max_copies(batch, commands);
        if copies > 1 {
            let (others, wait_ms) = (copies - 1, self.settings.ack_wait_ms);
            let parts = [others.to_string(), wait_ms.to_string()];
            bytes.extend(command(&[b"WAIT", parts[0].as_bytes(), parts[1].as_bytes()]));
        }
        connection.send(&bytes)?;
        Ok(connection)
    }

    fn receive(
        &mut self,
        address: String,
        batch: &[SentCommand],
        mut connection: Connection,
        round: &mut Round<'_>,
    ) {
        let mut is_script_missing = false;
        for (at, (index, is_asking)) in batch.iter().enumerate() {
            let asked = if *is_asking { connection.receive().map(drop) } else { Ok(()) };
            let reply = match asked.and_then(|()| connection.receive()) {
                Ok(reply) => reply,
                Err(error) => return self.on_node_lost(&address, &error, &batch[at..], round),
            };
            let Value::Error(why) = reply else {
                round.results[*index] = Ok(reply);
                continue;
            };
            if let Some(redirection) = redirection(&why, &address) {
                if !redirection.is_asking {
                    self.slots.set(redirection.slot, &redirection.address);
                }
                round.redirected.push((*index, Some(redirection)));
            } else if why.starts_with("NOSCRIPT") {
                is_script_missing = true;
                let (slot, address) = (round.commands[*index].slot, address.clone());
                let here = Redirection { slot, address, is_asking: *is_asking };
                round.redirected.push((*index, Some(here)));
            } else if RETRYABLE.iter().any(|word| why.starts_with(word)) {
                self.is_stale = true;
                round.results[*index] = Err(CommandError::Retry(why));
            } else {
                round.results[*index] = Err(CommandError::Refused(why));
            }
        }
        if let Err(error) = check_copies(batch, &mut connection, round) {
            return self.on_node_lost(&address, &error, batch, round);
        }
        // A new connection loads the script again.
        if !is_script_missing {
            self.connections.insert(address, connection);
        }
    }

    /// Handles the failure of a node, after which the known slots may be wrong.
    fn on_node_lost(
        &mut self,
        address: &str,
        error: &io::Error,
        batch: &[SentCommand],
        round: &mut Round<'_>,
    ) {
        self.is_stale = true;
        for (index, _) in batch {
            round.results[*index] = Err(CommandError::Retry(format!("{address}: {error}")));
        }
        // Redirected commands of the batch are retried with the others.
        round.redirected.retain(|(open, _)| !batch.iter().any(|(index, _)| index == open));
    }
}

/// The commands of one round, and their results.
struct Round<'a> {
    commands: &'a [Command],
    results: &'a mut [Result<Value, CommandError>],
    redirected: Vec<(usize, Option<Redirection>)>,
}

fn max_copies(batch: &[SentCommand], commands: &[Command]) -> u32 {
    batch.iter().map(|(index, _)| commands[*index].copies).max().unwrap_or(1)
}

/// Reads the reply to WAIT: the number of replicas that have all writes of this connection.
fn check_copies(
    batch: &[SentCommand],
    connection: &mut Connection,
    round: &mut Round<'_>,
) -> io::Result<()> {
    if max_copies(batch, round.commands) <= 1 {
        return Ok(());
    }
    let others = connection.receive()?.as_integer().ok_or(io::ErrorKind::InvalidData)?;
    let copies = u32::try_from(others).unwrap_or(0).saturating_add(1);
    for (index, _) in batch {
        if round.results[*index].is_ok() && round.commands[*index].copies > copies {
            round.results[*index] = Err(CommandError::TooFewCopies(copies));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
