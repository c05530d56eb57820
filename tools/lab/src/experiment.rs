//! The experiments by name. Each prepares its stacks, measures, and adds rows and verdicts.
//!
//! An experiment without an outboard binary still measures the peers and reports its targets as not
//! measured. All that it started has ended when it returns.

mod burst;
mod class_tree;
mod coroutine;
mod crowd;
mod database;
mod entity;
mod fetch;
mod files;
mod framework;
mod generator;
mod hello;
mod idle;
mod kill;
mod memory;
mod mixed;
mod moderate;
mod offload;
mod page_cache;
mod peers;
mod quick;
mod rates;
mod reload;
mod resident;
mod rewind;
mod rewind_endurance;
mod threads;
mod tls;
mod tracing;
mod wordpress;
mod worker;
mod workers;

use clap::ValueEnum;

use crate::error::Result;
use crate::lab::Lab;
use crate::report::Report;

/// An experiment.
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
    /// `kill -9` of workers under load: which requests get a 502, and how soon a new worker is
    /// there.
    Kill,
    /// Reloads under load: no failed request.
    Reload,
    /// A worker script with a response of two bytes against nginx's own: CPU per request.
    Worker,
    /// A page that waits for a backend, by the gateway's fetch and by plain curl.
    Fetch,
    /// Queries that wait, through unmodified PDO.
    Database,
    /// Isolation by rewind against isolation by reset, against forks where no rewind is possible, and php-fpm.
    Rewind,
    /// A million mixed requests to rewound workers: nothing grows, nothing fails, no state is carried over.
    RewindEndurance,
    /// Memory of a waiting coroutine.
    Coroutine,
    /// Memory and leaked state over a million mixed requests in worker mode.
    Mixed,
    /// A page of two scripts and a response of a backend of 1, 10 or 30 ms: fetched by the gateway,
    /// by nginx with Lua, and by curl in PHP.
    #[value(alias = "compose")]
    Offload,
    /// Eleven workloads over 100, 500 and 1,000 connections, against mod_php and php-fpm.
    #[value(alias = "workloads")]
    Workers,
    /// Eight programs that start a server, under `outboard run`, against their variants for mod_php and
    /// php-fpm.
    Resident,
    /// phpinfo and a blog's home page: without opcache, with it, and from page caches.
    PageCache,
    /// 23 bytes with validators: php-fpm, a worker script, and a framework in it.
    Framework,
    /// hello.php at rates from 500 to 16,000 per second: the rate from which latency rises.
    Rates,
    /// Hello at 200 to 20,000 requests per second: CPU per request while the machine is not full.
    Moderate,
    /// Hello at 5,000 requests per second after a burst of 1,000 connections: CPU per request, and workers that remain.
    Burst,
    /// Files and handshakes over TLS and HTTP/2 against nginx, HTTP/2 against HTTP/1.1, HTTP/3 against
    /// HTTP/2.
    Tls,
    /// A worker hello with traces of 1 % of the requests against one without: CPU per request.
    Tracing,
    /// A gateway with two threads against one with a single thread; then requests while workers are
    /// killed, pages purged and the configuration reloaded.
    Threads,
    /// The load generator against wrk and h2load: its CPU per request and its punctuality.
    Generator,
    /// PUT and GET at a fixed rate: a synchronous server against an asynchronous one.
    Entity,
}

impl Experiment {
    /// Runs the experiment.
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
            Self::Rewind => rewind::run(lab, report),
            Self::RewindEndurance => rewind_endurance::run(lab, report),
            Self::Coroutine => coroutine::run(lab, report),
            Self::Mixed => mixed::run(lab, report),
            Self::Offload => offload::run(lab, report),
            Self::Workers => workers::run(lab, report),
            Self::Resident => resident::run(lab, report),
            Self::PageCache => page_cache::run(lab, report),
            Self::Framework => framework::run(lab, report),
            Self::Rates => rates::run(lab, report),
            Self::Moderate => moderate::run(lab, report),
            Self::Burst => burst::run(lab, report),
            Self::Tls => tls::run(lab, report),
            Self::Tracing => tracing::run(lab, report),
            Self::Threads => threads::run(lab, report),
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

    /// Its description, one sentence.
    pub fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}
