//! The experiments: each prepares its stacks, measures, and adds rows and verdicts.
//!
//! An experiment whose subject is missing still measures the peers and says "not measured"
//! about its bars. Everything it started has ended when it returns.

mod compose;
mod coroutine;
mod crowd;
mod database;
mod fetch;
mod files;
mod fork;
mod hello;
mod idle;
mod kill;
mod memory;
mod mixed;
mod reload;
mod wordpress;
mod worker;
mod workloads;

use clap::ValueEnum;

use crate::error::Result;
use crate::lab::Lab;
use crate::report::Report;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// hello.php over 100 keep-alive connections: CPU per request.
    Hello,
    /// hello.php over 1,000 keep-alive connections: no failed request.
    Crowd,
    /// A static file of 1 KiB: CPU per request.
    Files,
    /// The home page of a WordPress on MariaDB: CPU per request and p99.
    Wordpress,
    /// 10,000 idle keep-alive connections: memory each, and the latency of others.
    Idle,
    /// Memory over a million requests.
    Memory,
    /// `kill -9` of workers under load: who gets a 502, and how fast a successor is there.
    Kill,
    /// Reloads under load: no failed request.
    Reload,
    /// A resident script of two bytes against nginx's own answer: CPU per request.
    Worker,
    /// A page that waits for a backend, by the gateway's fetch and by plain curl.
    Fetch,
    /// A page stitched from scripts and a fetch, against nginx with Lua.
    Compose,
    /// Queries that wait, through unmodified PDO.
    Database,
    /// Eleven workloads over 100, 500 and 1,000 connections, against mod_php and php-fpm.
    Workloads,
    /// Isolation by fork: Symfony, a large process, and from which boot time on it pays.
    Fork,
    /// Memory of a coroutine that waits.
    Coroutine,
    /// Memory and leftovers over a million mixed requests in worker mode.
    Mixed,
}

impl Experiment {
    /// Measures.
    pub fn run(self, lab: &mut Lab, report: &mut Report) -> Result<()> {
        match self {
            Self::Hello => hello::run(lab, report),
            Self::Crowd => crowd::run(lab, report),
            Self::Files => files::run(lab, report),
            Self::Wordpress => wordpress::run(lab, report),
            Self::Idle => idle::run(lab, report),
            Self::Memory => memory::run(lab, report),
            Self::Kill => kill::run(lab, report),
            Self::Reload => reload::run(lab, report),
            Self::Worker => worker::run(lab, report),
            Self::Fetch => fetch::run(lab, report),
            Self::Compose => compose::run(lab, report),
            Self::Database => database::run(lab, report),
            Self::Workloads => workloads::run(lab, report),
            Self::Fork => fork::run(lab, report),
            Self::Coroutine => coroutine::run(lab, report),
            Self::Mixed => mixed::run(lab, report),
        }
    }

    /// The name on the command line and in progress lines.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What is said of a bar when there is no outboard binary.
const NOT_BUILT: &str = "outboard is not built (OUTBOARD_BIN or target/release/outboard)";
