//! A key-value store over HTTP: PUT and GET at a fixed rate, with a store that waits for its disk
//! in threads of its own and with one that blocks the whole server.
//!
//! Values have 256 bytes, keys are drawn from 10,000, and the durability is `interval` unless a row
//! says otherwise. Each file below adds some rows: fixed rates and their CPU time, overload, little
//! memory, many reads in one request, and the comparisons with Redis.

use crate::error::Result;
use crate::lab::Lab;
use crate::outboard;
use crate::redis;
use crate::report::Report;
use crate::site::Site;
use store::launch;

mod capacity;
mod get_many;
mod little_memory;
mod mixes;
mod overload;
mod queues;
mod rates;
mod store;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    if let Some(stack) = rates::run(lab, report, &site)? {
        queues::run(lab, report, &stack)?;
        overload::processor(lab, report, &stack)?;
    }
    if let Some(stack) = launch(lab, &site, overload::DISK, overload::SETTINGS)? {
        overload::disk(lab, report, &stack)?;
    }
    if let Some(stack) = launch(lab, &site, little_memory::NAME, little_memory::SETTINGS)? {
        little_memory::run(lab, report, &stack)?;
    }
    get_many::run(lab, report)?;
    let Some(outboard) = launch(lab, &site, outboard::NAME, "")? else { return Ok(()) };
    let redis = match redis::start(lab) {
        Ok(redis) => redis,
        Err(error) => {
            report.notes.push(format!("entity without Redis: {error}"));
            return Ok(());
        }
    };
    mixes::run(lab, report, &outboard, &redis)?;
    capacity::run(lab, report, &outboard, &redis)
}
