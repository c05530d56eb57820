//! The admin API of the ban list.
//!
//! Called by [`crate::admin`]. Invariant: a change that is confirmed is in force on all threads, and on disk
//! if bans have a file.

use crate::admin_reply::Refusal;
use crate::gateway::Gateway;
use outboard_access::{Ban, InvalidNetwork, Network};
use outboard_admin_api::bans;
use outboard_log::{Level, Wall};
use outboard_reactor::blocking;
use std::rc::Rc;

/// Bytes of a reason.
const REASON_MAX_BYTES: usize = 200;
/// A shorter prefix is an error in the command rather than an attack from there.
const SHORTEST_V4: u8 = 8;
const SHORTEST_V6: u8 = 16;

/// The bans.
pub(crate) fn list(gateway: &Rc<Gateway>) -> bans::Bans {
    let access = gateway.generation().access.clone();
    let now_s = Wall::now().unix_s();
    access.bans.remove_ended(now_s);
    let entry = |(network, ban): (Network, Ban)| bans::Entry {
        network: network.to_string(),
        until_s: ban.until_s,
        reason: ban.reason,
    };
    bans::Bans { bans: access.bans.list(now_s).into_iter().map(entry).collect() }
}

/// Bans a network.
pub(crate) async fn ban(gateway: &Rc<Gateway>, ban: &bans::Add) -> Result<bans::Changed, Refusal> {
    let network = network(&ban.network)?;
    let shortest = if network.address.is_ipv4() { SHORTEST_V4 } else { SHORTEST_V6 };
    if network.prefix_bits < shortest {
        let text = format!("{network} has too many addresses: the shortest prefix is {shortest}");
        return Err(Refusal::new(400, text));
    }
    let now_s = Wall::now().unix_s();
    let until_s = ban.for_s.map(|for_s| now_s.saturating_add(for_s));
    let added = Ban { until_s, reason: one_line(ban.reason.as_deref().unwrap_or_default()) };
    let access = gateway.generation().access.clone();
    let is_full = access.bans.ban(network, added.clone(), now_s);
    is_full.map_err(|full| Refusal::new(409, full.to_string()))?;
    let length = ban.for_s.map_or("for good".to_owned(), |for_s| format!("for {for_s} s"));
    gateway.server.log(Level::Info, &format!("banned {network} {length}: {}", added.reason));
    store(gateway, network, Some(added)).await?;
    Ok(bans::Changed { network: network.to_string(), was_banned: true })
}

/// Removes a ban.
pub(crate) async fn unban(
    gateway: &Rc<Gateway>,
    unban: &bans::Remove,
) -> Result<bans::Changed, Refusal> {
    let network = network(&unban.network)?;
    let was_banned = gateway.generation().access.bans.unban(&network);
    if was_banned {
        gateway.server.log(Level::Info, &format!("unbanned {network}"));
        store(gateway, network, None).await?;
    }
    Ok(bans::Changed { network: network.to_string(), was_banned })
}

async fn store(gateway: &Rc<Gateway>, network: Network, ban: Option<Ban>) -> Result<(), Refusal> {
    let access = gateway.generation().access.clone();
    let stored = blocking(move || access.store_ban(&network, ban.as_ref())).await;
    stored.map_err(|error| Refusal::new(500, format!("it is in force, but not on disk: {error}")))
}

fn network(written: &str) -> Result<Network, Refusal> {
    let parsed = written.parse();
    parsed.map_err(|error: InvalidNetwork| Refusal::new(400, format!("`{written}`: {error}")))
}

fn one_line(text: &str) -> String {
    let plain: String =
        text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    plain.trim()[..plain.trim().floor_char_boundary(REASON_MAX_BYTES)].to_owned()
}
