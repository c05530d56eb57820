//! The lab: stacks side by side, measured in interleaved slices, judged against bars.
//!
//! `outboard-lab` (behind `make bench`) is its only caller. The map, from the outside in:
//! [`experiment`]s start [`stack`]s ([`nginx`], [`fpm`], [`apache`], [`mariadb`], [`outboard`]),
//! put load on them ([`wrk`], [`client`], [`background`]) in [`slice`]s, with a [`backend`] to wait
//! for and [`fixture`]s to serve, and turn what [`group`] accounts for
//! into [`statistics`], a [`verdict`] and a [`report`], printed by [`table`]. Whatever is
//! started is ended by [`group`] or, if the lab dies, by the [`janitor`].
#![forbid(unsafe_code)]

pub mod apache;
pub mod ask;
pub mod backend;
pub mod background;
pub mod cgroup;
pub mod client;
pub mod error;
pub mod experiment;
pub mod fixture;
pub mod fpm;
pub mod group;
pub mod http;
pub mod janitor;
pub mod lab;
pub mod load;
pub mod machine;
pub mod mariadb;
pub mod marks;
pub mod nginx;
pub mod outboard;
pub mod php;
pub mod process_table;
pub mod report;
pub mod site;
pub mod slice;
pub mod stack;
pub mod statistics;
pub mod table;
pub mod verdict;
pub mod wordpress;
pub mod wrk;
