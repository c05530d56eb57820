//! The lab: stacks side by side, measured in interleaved slices, judged against targets.
//!
//! The binary `outboard-lab` ([`cli`]) is its only user. The map, from the outside in: a [`run`] of
//! [`experiment`]s starts [`stack`]s ([`nginx`], [`fpm`], [`apache`], [`varnish`], [`builtin`],
//! [`mariadb`], [`redis`], [`outboard`], [`programs`]), some with a [`tls_listener`], with [`fixture`]s to serve and a slow [`backend`], and
//! puts load on them ([`generator`], [`background`]) in [`slice`]s in [`balanced_order`]. The CPU
//! time of each [`group`] goes through [`statistics`] into [`comparison`]s by [`metric`] and
//! [`verdict`]s on targets, unless a [`refusal`] forbids it. The [`doctor`] observes whether
//! settings are alike ([`fairness`]). [`table`], [`markdown`] and [`page`] render the [`report`] and its [`row`]s.
//! [`group`] ends all processes or, if the lab dies, the [`janitor`] does. [`ab`] compares
//! [`variant`]s of the user's choice, and [`calibrate`] compares a stack of the [`catalog`] with
//! itself. [`instructions`] are counted by [`callgrind`], and the cache lines of a [`footprint`] by ptrace.
//! `bench` measures a single server.
#![forbid(unsafe_code)]

pub mod ab;
pub mod apache;
pub mod backend;
pub mod background;
pub mod balanced_order;
mod bench;
pub mod builtin;
pub mod calibrate;
pub mod callgrind;
pub mod catalog;
pub mod cgroup;
pub mod cli;
pub mod collector;
pub mod comparison;
pub mod doctor;
pub mod error;
pub mod experiment;
pub mod fairness;
pub mod fixture;
pub mod footprint;
pub mod fpm;
pub mod generator;
pub mod group;
pub mod h2load;
pub mod http;
pub mod instructions;
pub mod janitor;
pub mod lab;
pub mod listener;
pub mod load;
pub mod machine;
pub mod mariadb;
pub mod markdown;
pub mod metric;
pub mod nginx;
pub mod null;
pub mod outboard;
pub mod page;
pub mod php;
pub mod profile;
pub mod programs;
pub mod redis;
pub mod refusal;
pub mod report;
pub mod report_files;
pub mod request_spec;
pub mod request_trace;
pub mod row;
pub mod run;
pub mod series;
pub mod site;
pub mod slice;
pub mod stack;
pub mod statistics;
pub mod system;
pub mod table;
mod terminal;
pub mod tls_listener;
pub mod variant;
pub mod varnish;
pub mod verdict;
pub mod wordpress;
pub mod wrk;
