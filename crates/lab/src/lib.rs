//! The lab: stacks side by side, measured in interleaved slices, judged against bars.
//!
//! `outboard lab` (behind `make bench`) is its only caller. The map, from the outside in:
//! a [`run`] of [`experiment`]s starts [`stack`]s ([`nginx`], [`fpm`], [`apache`],
//! [`varnish`], [`builtin`], [`mariadb`], [`outboard`]), puts load on them ([`generator`], [`background`]) in [`slice`]s whose
//! [`order`] is balanced, with a [`backend`] to wait for and [`fixture`]s to serve. What [`group`]
//! accounts for becomes [`statistics`] and from there [`comparison`]s by [`metric`] and
//! [`verdict`]s on bars, unless a [`refusal`] forbids it; [`fairness`] tells whether the stacks
//! are set up alike (the [`doctor`] looks), and [`published`] what others once measured. The [`report`] of it all is
//! shown by [`table`], [`markdown`] and [`page`]. Whatever is started is ended by [`group`] or, if the lab dies, by the
//! [`janitor`]. Beside the experiments, [`ab`] compares [`side`]s of the user's choice, and
//! [`calibrate`] compares a stack of the [`catalog`] with itself.
#![forbid(unsafe_code)]

pub mod ab;
pub mod apache;
pub mod ask;
pub mod backend;
pub mod background;
pub mod builtin;
pub mod calibrate;
pub mod catalog;
pub mod cgroup;
pub mod comparison;
pub mod doctor;
pub mod error;
pub mod experiment;
pub mod fairness;
pub mod fixture;
pub mod fpm;
pub mod generator;
pub mod group;
pub mod h2load;
pub mod http;
pub mod janitor;
pub mod lab;
pub mod listener;
pub mod load;
pub mod machine;
pub mod mariadb;
pub mod markdown;
pub mod marks;
pub mod metric;
pub mod nginx;
pub mod null;
pub mod order;
pub mod outboard;
pub mod page;
pub mod php;
pub mod process_table;
pub mod profile;
pub mod published;
pub mod redis;
pub mod refusal;
pub mod report;
pub mod run;
pub mod side;
pub mod site;
pub mod slice;
pub mod stack;
pub mod statistics;
pub mod table;
pub mod varnish;
pub mod verdict;
pub mod wordpress;
pub mod wrk;
