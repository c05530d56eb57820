//! A key-value store over HTTP: PUT and GET at a fixed rate, with a store that waits for its disk
//! in threads of its own and with one that blocks the whole server.
//!
//! Values have 256 bytes, keys are drawn from 10,000, and the durability is `interval` unless a row
//! says otherwise. Each file below adds some rows: fixed rates and their CPU time, overload, little
//! memory, many reads in one request, and the comparisons with Redis.

use std::net::SocketAddr;

use crate::error::Result;
use crate::generator::{Mix, Protocol};
use crate::lab::Lab;
use crate::outboard::{self, Outboard, Setup};
use crate::redis;
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::Site;
use crate::stack::Stack;
use crate::system::free_address;

mod capacity;
mod get_many;
mod little_memory;
mod mixes;
mod overload;
mod queues;
mod rates;

const KEYS: u64 = 10_000;
/// The connections of the targets.
const CONNECTIONS: usize = 64;

/// So small that files are written within every slice: at 15,000 values per second, five in four
/// seconds.
const SMALL_BUFFER: &str = "write_buffer = \"4 MiB\"\n";

const VALUE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
                     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
                     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
                     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

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

/// A gateway whose store has a listener of its own, which is measured.
fn launch(lab: &mut Lab, site: &Site, name: &'static str, how: &str) -> Result<Option<Stack>> {
    let address: SocketAddr = free_address()?;
    let directory = lab.directory(name)?.join(format!("entities-{}", address.port()));
    let entities = format!("[kv]\ndata_dir = {directory:?}\nlisten = \"{address}\"\n{how}");
    let setup = Setup::classic(lab, &site.root).named(name).with(&entities);
    let launched = Outboard::launch(lab, &setup)?;
    Ok(launched.map(|outboard| Stack { address, ..outboard.stack }))
}

/// The length of a slice if the rate is not measured.
fn slice_seconds(lab: &Lab) -> f64 {
    if lab.effort.is_quick() { lab.effort.short_slice_seconds() } else { lab.effort.slice_seconds }
}

/// With a name that the store's listener accepts from this machine.
const STORE: &str = "localhost";

fn put() -> RequestSpec {
    RequestSpec::put("/v0/entity?id=key{key}", VALUE).to_host(STORE).filled()
}

fn get() -> RequestSpec {
    RequestSpec::get("/v0/entity?id=key{key}").to_host(STORE).filled().expecting(VALUE.len())
}

/// Writes every key to a store.
fn fill(stack: &Stack) -> Result<()> {
    let request = RequestSpec::put("/v0/entity?id=key{seq}", VALUE).to_host(STORE).filled();
    Mix::of(Protocol::Http, request, KEYS, CONNECTIONS).run_count(stack, KEYS).map(|_| ())
}
