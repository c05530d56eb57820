//! The experiments: each prepares its stacks, measures, and adds rows and verdicts.
//!
//! An experiment whose subject is missing still measures the peers and says "not measured"
//! about its bars. Everything it started has ended when it returns.

mod coroutine;
mod crowd;
mod database;
mod entity;
mod fetch;
mod files;
mod fork;
mod framework;
mod generator;
mod hello;
mod idle;
mod kill;
mod memory;
mod mixed;
mod offload;
mod page_cache;
mod rates;
mod reload;
mod wordpress;
mod worker;
mod workers;

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
    /// Queries that wait, through unmodified PDO.
    Database,
    /// Isolation by fork: Symfony, a large process, and from which boot time on it pays.
    Fork,
    /// Memory of a coroutine that waits.
    Coroutine,
    /// Memory and leftovers over a million mixed requests in worker mode.
    Mixed,
    /// A page of two scripts and an answer of a backend of 1, 10 or 30 ms: fetched by the gateway,
    /// by nginx with Lua, and by curl in PHP.
    #[value(alias = "compose")]
    Offload,
    /// Eleven workloads over 100, 500 and 1,000 connections, against mod_php and php-fpm.
    #[value(alias = "workloads")]
    Workers,
    /// phpinfo and a blog's home page: without opcache, with it, and from page caches.
    PageCache,
    /// 23 bytes with validators: php-fpm, a resident script, and a framework in it.
    Framework,
    /// hello.php at offered rates from 500 to 16,000 a second: where latency begins to bend.
    Rates,
    /// The load generator itself against wrk and h2load: its CPU per request, its punctuality.
    Generator,
    /// PUT and GET at a fixed rate: a synchronous server against an asynchronous one.
    Entity,
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
            Self::Database => database::run(lab, report),
            Self::Fork => fork::run(lab, report),
            Self::Coroutine => coroutine::run(lab, report),
            Self::Mixed => mixed::run(lab, report),
            Self::Offload => offload::run(lab, report),
            Self::Workers => workers::run(lab, report),
            Self::PageCache => page_cache::run(lab, report),
            Self::Framework => framework::run(lab, report),
            Self::Rates => rates::run(lab, report),
            Self::Generator => generator::run(lab, report),
            Self::Entity => entity::run(lab, report),
        }
    }

    /// All of them, in the order of a full run.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The name on the command line and in reports.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What it measures, in a sentence.
    pub fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}

/// Numbers of connections to measure: all, or the first in a quick run, which then says so.
fn crowds<'a>(lab: &Lab, report: &mut Report, all: &'a [usize]) -> &'a [usize] {
    if !lab.effort.is_quick() {
        return all;
    }
    let (measured, left_out) = all.split_at(1);
    let name = report.sections.last().map_or("", |section| &section.name);
    report.notes.push(format!("{name}: quick, so c = {measured:?} and not {left_out:?}"));
    measured
}

/// What is said of a bar when there is no outboard binary.
const NOT_BUILT: &str = "OUTBOARD_BIN names no program";
