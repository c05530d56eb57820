//! The measuring library: a load generator, CPU accounting and profiles.
//!
//! Used by `outboard bench`, `outboard profile` and the lab. A [`Plan`] describes a run completely;
//! [`Run::start`] starts it; [`Run::next_interval`] follows the time series; [`Run::finish`] returns
//! the [`Summary`]: counts by class of failure, histograms that can be merged, the CPU time of both
//! ends, and the [`Warning`]s about its reliability.
//!
//! Invariants: the wait for a connection is part of a request's latency, which counts from when the
//! request was due; a failed request is counted once, in one class; threads share nothing while they
//! send. An epoll loop with rendered requests keeps the cost of a request at that of its system
//! calls.
//!
//! | file | owns |
//! |---|---|
//! | `target` | address and protocol from a URL |
//! | `plan`, `template`, `scenario` | the requests and the expected responses |
//! | `schedule` | due times of an open loop |
//! | `random`, `key_distribution`, `keys` | random numbers and keys |
//! | `run`, `worker`, `share` | threads, their loop, the collector |
//! | `user`, `request_generator`, `message` | the next request of a user, and its bytes |
//! | `connection`, `socket`, `timers`, `tls`, `quic`, `probe` | sockets and their connections |
//! | `codec`, `http1`, `http2`, `http3`, `fastcgi`, `redis`, `received`, `response` | protocols |
//! | `recorder`, `failures`, `times`, `server_cpu`, [`process_table`] | counters and CPU time |
//! | `threshold`, `search` | conditions on a result, and the highest rate that meets them |
//! | `null` | a server with almost no cost, to measure the generator itself |
//! | `summary`, `interval`, `warning`, [`report`] | the result, its reliability and its rendering |
//! | [`client`] | single blocking requests |
//! | [`profile`] | samples of running processes, flame graphs |
//!
//! # Examples
//!
//! ```
//! use outboard_load::{NullServer, Plan, Run, Target, Threshold};
//!
//! let server = NullServer::start()?;
//! let plan = Plan {
//!     connections: 2,
//!     requests: Some(100),
//!     ..Plan::new(Target::parse(&server.url())?)
//! };
//! let summary = Run::start(plan)?.finish()?;
//! println!("{:.0} per second, {} failed", summary.rate(), summary.failures);
//! assert_eq!(summary.responses, 100);
//! assert!(Threshold::parse("errors<0.1%")?.is_met(&summary));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod codec;
mod connection;
mod failures;
mod fastcgi;
mod http1;
mod http2;
mod http3;
mod interval;
mod key_distribution;
mod keys;
mod message;
mod null;
mod plan;
mod probe;
mod quic;
mod random;
mod received;
mod recorder;
mod redis;
pub mod report;
mod request_generator;
mod response;
mod run;
mod scenario;
mod schedule;
mod search;
mod server_cpu;
mod share;
mod socket;
mod summary;
mod target;
mod template;
mod threshold;
mod timers;
mod times;
mod tls;
mod user;
mod warning;
mod worker;

#[doc(hidden)]
pub use codec::read_response;
pub use failures::{Failure, Failures};
pub use hdrhistogram::Histogram;
pub use interval::Interval;
pub use key_distribution::DEFAULT_EXPONENT as ZIPF_DEFAULT_EXPONENT;
pub use null::NullServer;
pub use outboard_profile::duration::parse as parse_duration;
pub use plan::{Capture, Expect, Feed, Load, Plan, Request, Script, Step};
pub use recorder::First;
pub use run::{Error, Run};
pub use scenario::InvalidScenario;
pub use schedule::{Arrival, Rate};
pub use search::Search;
pub use server_cpu::{Processes, ServerCpu};
pub use summary::Summary;
pub use target::{Address, InvalidTarget, Protocol, Target};
pub use template::{InvalidTemplate, Template};
pub use threshold::{InvalidThreshold, Threshold};
pub use times::{Times, histogram};
pub use warning::Warning;
