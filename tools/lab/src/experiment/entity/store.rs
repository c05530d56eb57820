//! The store that is measured, and the requests to it: values of 256 bytes under 10,000 keys.
//!
//! Used by every row.

use crate::error::Result;
use crate::generator::{Mix, Protocol};
use crate::lab::Lab;
use crate::outboard::{Outboard, Setup};
use crate::request_spec::RequestSpec;
use crate::site::Site;
use crate::stack::Stack;
use crate::system::free_address;
use std::net::SocketAddr;

pub(super) const KEYS: u64 = 10_000;
/// The connections of the targets.
pub(super) const CONNECTIONS: usize = 64;

/// So small that files are written within every slice: at 15,000 values per second, five in four
/// seconds.
pub(super) const SMALL_BUFFER: &str = "write_buffer = \"4 MiB\"\n";

pub(super) const VALUE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
                     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
                     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
                     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A gateway whose store has a listener of its own, which is measured.
pub(super) fn launch(
    lab: &mut Lab,
    site: &Site,
    name: &'static str,
    how: &str,
) -> Result<Option<Stack>> {
    let address: SocketAddr = free_address()?;
    let directory = lab.directory(name)?.join(format!("entities-{}", address.port()));
    let entities = format!("[kv]\ndata_dir = {directory:?}\nlisten = \"{address}\"\n{how}");
    let setup = Setup::classic(lab, &site.root).named(name).with(&entities);
    let launched = Outboard::launch(lab, &setup)?;
    Ok(launched.map(|outboard| Stack { address, ..outboard.stack }))
}

/// The length of a slice if the rate is not measured.
pub(super) fn slice_seconds(lab: &Lab) -> f64 {
    if lab.effort.is_quick() { lab.effort.short_slice_seconds() } else { lab.effort.slice_seconds }
}

/// With a name that the store's listener accepts from this machine.
pub(super) const STORE: &str = "localhost";

pub(super) fn put() -> RequestSpec {
    RequestSpec::put("/v0/entity?id=key{key}", VALUE).to_host(STORE).filled()
}

pub(super) fn get() -> RequestSpec {
    RequestSpec::get("/v0/entity?id=key{key}").to_host(STORE).filled().expecting(VALUE.len())
}

/// Writes every key to a store.
pub(super) fn fill(stack: &Stack) -> Result<()> {
    let request = RequestSpec::put("/v0/entity?id=key{seq}", VALUE).to_host(STORE).filled();
    Mix::of(Protocol::Http, request, KEYS, CONNECTIONS).run_count(stack, KEYS).map(|_| ())
}
