//! A Redis, or a cluster of them, as one thread sees it: each command goes to the node that has its
//! key, however these move.
//!
//! Called by [`super::records`]. Commands for a node go out together and their replies are read in
//! order. Invariants: a connection is kept only while every reply was read; what cannot be done now
//! and may be done later comes back as such, so that nobody behind it waits here.

use super::RedisSettings;
use super::slots::{Redirection, Slots, redirection};
use super::wire::{Connection, Reply, command};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

/// How often a command is passed on to another node at once: to where its slot is moving, and once
/// more when it has arrived there meanwhile.
const HOPS: usize = 4;
/// What a node says that can do a command later: Redis Cluster specification and `server.c`.
const LATER: [&str; 6] =
    ["TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "UNBLOCKED"];
/// How writes are done.
const SCRIPT: &[u8] = include_bytes!("write.lua");

/// A command and where it belongs.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) slot: u16,
    pub(crate) what: What,
    /// So many nodes have to have it, the primary among them, before it counts as done.
    pub(crate) copies: u32,
}

/// What is done there.
#[derive(Debug)]
pub(crate) enum What {
    /// This, as it goes over the wire.
    Command(Vec<u8>),
    /// The script, with its key and its arguments.
    Script(Vec<Vec<u8>>),
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Not now; this is why.
    Later(String),
    /// It was done, and only so many nodes have it.
    TooFew(u32),
    /// Never; in Redis's words.
    Refused(String),
}

/// Connections to the nodes, and what is known of them.
#[derive(Debug)]
pub(crate) struct Cluster {
    settings: Arc<RedisSettings>,
    slots: Slots,
    is_stale: bool,
    connections: HashMap<String, Connection>,
    /// The script's name, as Redis said.
    script: Vec<u8>,
}

/// A command on its way: its place in the list, and whether the node is to be told that its slot is
/// moving there.
type Sent = (usize, bool);

impl Cluster {
    /// Nothing is asked yet.
    pub(crate) fn new(settings: Arc<RedisSettings>) -> Self {
        let (slots, connections) = (Slots::default(), HashMap::new());
        Self { settings, slots, is_stale: true, connections, script: Vec::new() }
    }

    /// Has commands done; one answer for each, in order.
    pub(crate) fn run(&mut self, commands: &[Command]) -> Vec<Result<Reply, Trouble>> {
        let why = match self.make_fresh() {
            Ok(()) => "it was passed on too often".to_owned(),
            Err(error) => error.to_string(),
        };
        let mut answers = vec![Err(Trouble::Later(why)); commands.len()];
        let mut open: Vec<(usize, Option<Redirection>)> =
            (0..commands.len()).map(|index| (index, None)).collect();
        for _ in 0..HOPS {
            if open.is_empty() || self.is_unknown() {
                break;
            }
            let mut round = Round { commands, answers: &mut answers, passed_on: Vec::new() };
            let by_node = self.by_node(std::mem::take(&mut open), &mut round);
            let mut sent = Vec::new();
            for (address, batch) in by_node {
                match self.send(&address, &batch, commands) {
                    Ok(connection) => sent.push((address, batch, connection)),
                    Err(error) => self.lost(&address, &error, &batch, &mut round),
                }
            }
            for (address, batch, connection) in sent {
                self.receive(address, &batch, connection, &mut round);
            }
            open = round.passed_on;
        }
        answers
    }

    /// The primaries.
    ///
    /// # Errors
    /// No node tells.
    pub(crate) fn primaries(&mut self) -> io::Result<Vec<String>> {
        self.make_fresh()?;
        Ok(self.slots.primaries())
    }

    /// Asks one node.
    ///
    /// # Errors
    /// It does not answer, or not with what was asked for.
    pub(crate) fn ask(&mut self, address: &str, bytes: &[u8]) -> io::Result<Reply> {
        let asked = self.connection(address).and_then(|mut connection| {
            let reply = connection.ask(bytes)?;
            Ok((connection, reply))
        });
        self.is_stale |= asked.is_err();
        let (connection, reply) = asked?;
        self.connections.insert(address.to_owned(), connection);
        match reply {
            Reply::Refused(why) => Err(io::Error::other(format!("{address}: {why}"))),
            reply => Ok(reply),
        }
    }

    fn is_unknown(&self) -> bool {
        self.slots.owner(0).is_none() && self.slots.primaries().is_empty()
    }

    /// Asks who has which slots, if that may have changed.
    fn make_fresh(&mut self) -> io::Result<()> {
        if !self.is_stale {
            return Ok(());
        }
        let mut known: Vec<String> = self.connections.keys().cloned().collect();
        known.extend(self.slots.primaries());
        known.extend(self.settings.nodes.iter().cloned());
        let mut asked = BTreeSet::new();
        let mut last = io::Error::other("no node of Redis is named");
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

    /// Who gets what.
    fn by_node(
        &mut self,
        open: Vec<(usize, Option<Redirection>)>,
        round: &mut Round<'_>,
    ) -> BTreeMap<String, Vec<Sent>> {
        let mut by_node: BTreeMap<String, Vec<Sent>> = BTreeMap::new();
        for (index, redirection) in open {
            let slot = round.commands[index].slot;
            let (address, is_asking) = match redirection {
                Some(redirection) => (redirection.address, redirection.is_asking),
                None => match self.slots.owner(slot) {
                    Some(address) => (address.to_owned(), false),
                    None => {
                        self.is_stale = true;
                        let why = format!("no node has slot {slot}");
                        round.answers[index] = Err(Trouble::Later(why));
                        continue;
                    }
                },
            };
            by_node.entry(address).or_default().push((index, is_asking));
        }
        by_node
    }

    /// A connection that every reply of was read, for its only user.
    fn connection(&mut self, address: &str) -> io::Result<Connection> {
        if let Some(connection) = self.connections.remove(address) {
            return Ok(connection);
        }
        let mut connection = Connection::open(address, &self.settings)?;
        match connection.ask(&command(&[b"SCRIPT", b"LOAD", SCRIPT]))? {
            Reply::Bytes(script) => self.script = script,
            Reply::Refused(why) => return Err(io::Error::other(why)),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(connection)
    }

    fn send(
        &mut self,
        address: &str,
        batch: &[Sent],
        commands: &[Command],
    ) -> io::Result<Connection> {
        let mut connection = self.connection(address)?;
        let mut bytes = Vec::new();
        for (index, is_asking) in batch {
            if *is_asking {
                bytes.extend(command(&[b"ASKING"]));
            }
            match &commands[*index].what {
                What::Command(command) => bytes.extend_from_slice(command),
                What::Script(arguments) => {
                    let mut parts: Vec<&[u8]> = vec![b"EVALSHA", &self.script, b"1"];
                    parts.extend(arguments.iter().map(Vec::as_slice));
                    bytes.extend(command(&parts));
                }
            }
        }
        let copies = most_copies(batch, commands);
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
        batch: &[Sent],
        mut connection: Connection,
        round: &mut Round<'_>,
    ) {
        let mut wants_script = false;
        for (at, (index, is_asking)) in batch.iter().enumerate() {
            let asked = if *is_asking { connection.receive().map(drop) } else { Ok(()) };
            let reply = match asked.and_then(|()| connection.receive()) {
                Ok(reply) => reply,
                Err(error) => return self.lost(&address, &error, &batch[at..], round),
            };
            let Reply::Refused(why) = reply else {
                round.answers[*index] = Ok(reply);
                continue;
            };
            if let Some(redirection) = redirection(&why, &address) {
                if !redirection.is_asking {
                    self.slots.set(redirection.slot, &redirection.address);
                }
                round.passed_on.push((*index, Some(redirection)));
            } else if why.starts_with("NOSCRIPT") {
                wants_script = true;
                let (slot, address) = (round.commands[*index].slot, address.clone());
                let here = Redirection { slot, address, is_asking: *is_asking };
                round.passed_on.push((*index, Some(here)));
            } else if LATER.iter().any(|word| why.starts_with(word)) {
                self.is_stale = true;
                round.answers[*index] = Err(Trouble::Later(why));
            } else {
                round.answers[*index] = Err(Trouble::Refused(why));
            }
        }
        if let Err(error) = heed_copies(batch, &mut connection, round) {
            return self.lost(&address, &error, batch, round);
        }
        // Without the connection the script is loaded into the next one.
        if !wants_script {
            self.connections.insert(address, connection);
        }
    }

    /// A node is not there. What is known of it may be wrong.
    fn lost(&mut self, address: &str, error: &io::Error, batch: &[Sent], round: &mut Round<'_>) {
        self.is_stale = true;
        for (index, _) in batch {
            round.answers[*index] = Err(Trouble::Later(format!("{address}: {error}")));
        }
        // What it passed on is asked for again as a whole.
        round.passed_on.retain(|(open, _)| !batch.iter().any(|(index, _)| index == open));
    }
}

/// Commands that are out at once, and what came of them.
struct Round<'a> {
    commands: &'a [Command],
    answers: &'a mut [Result<Reply, Trouble>],
    passed_on: Vec<(usize, Option<Redirection>)>,
}

fn most_copies(batch: &[Sent], commands: &[Command]) -> u32 {
    batch.iter().map(|(index, _)| commands[*index].copies).max().unwrap_or(1)
}

/// Reads the reply to WAIT, which counts the nodes that have all that this connection wrote.
fn heed_copies(
    batch: &[Sent],
    connection: &mut Connection,
    round: &mut Round<'_>,
) -> io::Result<()> {
    if most_copies(batch, round.commands) <= 1 {
        return Ok(());
    }
    let others = connection.receive()?.number().ok_or(io::ErrorKind::InvalidData)?;
    let copies = u32::try_from(others).unwrap_or(0).saturating_add(1);
    for (index, _) in batch {
        if round.answers[*index].is_ok() && round.commands[*index].copies > copies {
            round.answers[*index] = Err(Trouble::TooFew(copies));
        }
    }
    Ok(())
}
