//! The experiments: each prepares its stacks, measures, and adds rows and verdicts.
//!
//! An experiment whose subject is missing still measures the peers and says "not measured"
//! about its bars. Everything it started has ended when it returns.

mod crowd;
mod files;
mod hello;
mod idle;
mod kill;
mod memory;
mod reload;
mod wordpress;

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
        }
    }

    /// The name on the command line and in progress lines.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What is said of a bar when there is no outboard binary.
const NOT_BUILT: &str = "outboard is not built (OUTBOARD_BIN or target/release/outboard)";
