//! A load generator: sends HTTP requests by a plan and says what came of it.
//!
//! Called by `outboard bench` and by whatever needs load under its own control. A [`Plan`] says
//! everything beforehand; [`Run::start`] begins; [`Run::next_moment`] follows the time series;
//! [`Run::finish`] gives the [`Summary`]: counts by class of failure, histograms that can be
//! merged, the CPU time of both sides, and the [`Doubt`]s that speak against believing it.
//!
//! ```no_run
//! use outboard_load::{Plan, Run, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let plan = Plan::new(Target::parse("http://127.0.0.1:8080/")?);
//! let summary = Run::start(plan)?.finish()?;
//! println!("{:.0} a second, {} failed", summary.rate(), summary.failures);
//! # Ok(())
//! # }
//! ```
//!
//! Invariants: a request that waits for a connection is never forgotten, and its latency counts
//! from when it was intended; a failed request is counted once, in one class; nothing is shared
//! between threads while they send. An own epoll loop with requests made into bytes beforehand
//! keeps the cost of a request at that of its system calls.
//!
//! | file | owns |
//! |---|---|
//! | `target` | what a URL says |
//! | `plan`, `template`, `scenario` | what is sent, expected, and when |
//! | `schedule` | due times of an open loop |
//! | `random`, `zipf`, `keys` | what is drawn |
//! | `run`, `worker` | threads, their loop, the collecting |
//! | `user`, `wording`, `message` | who sends what next, and its bytes |
//! | `connection`, `socket`, `tls`, `codec`, `http1`, `http2`, `fastcgi`, `redis`, `answer` | sockets and protocols |
//! | `recorder`, `failures`, `times`, `server_cpu` | what is counted |
//! | `promise`, `search` | what a result must keep, and the highest rate that keeps it |
//! | `null` | a server that costs next to nothing, to measure the generator itself |
//! | `summary`, `moment`, `doubt`, [`report`] | what came of it, whether to believe it, how to show it |
#![forbid(unsafe_code)]

mod answer;
mod codec;
mod connection;
mod doubt;
mod failures;
mod fastcgi;
mod http1;
mod http2;
mod keys;
mod message;
mod moment;
mod null;
mod plan;
mod promise;
mod random;
mod recorder;
mod redis;
pub mod report;
mod run;
mod scenario;
mod schedule;
mod search;
mod server_cpu;
mod socket;
mod summary;
mod target;
mod template;
mod times;
mod tls;
mod user;
mod wording;
mod worker;
mod zipf;

#[doc(hidden)]
pub use codec::read_answer;
pub use doubt::Doubt;
pub use failures::{Failure, Failures};
pub use hdrhistogram::Histogram;
pub use moment::Moment;
pub use null::NullServer;
pub use plan::{Capture, Expect, Feed, Load, Plan, Request, Script, Step};
pub use promise::{InvalidPromise, Promise};
pub use recorder::{First, histogram};
pub use run::{Error, Run};
pub use scenario::{InvalidScenario, parse_duration};
pub use schedule::{Arrival, Rate};
pub use search::Search;
pub use server_cpu::{Processes, ServerCpu};
pub use summary::Summary;
pub use target::{Address, InvalidTarget, Protocol, Target};
pub use template::{InvalidTemplate, Template};
pub use times::Times;
pub use zipf::USUAL as ZIPF_USUAL;
