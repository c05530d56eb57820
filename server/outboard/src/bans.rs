//! `outboard ban`, `unban` and `bans`: the networks whose clients a running server refuses.

use crate::admin;
use crate::admin::AdminArguments;
use crate::terminal::Terminal;
use clap::Args;
use outboard_admin_api::bans::{Add, List, Remove};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Args)]
pub(crate) struct BanArguments {
    /// An address, or a network such as 198.51.100.0/24.
    pub(crate) network: String,
    /// How long, such as 90s, 10m, 1h or 7d [default: until `outboard unban`].
    #[arg(long = "for", value_name = "TIME", value_parser = crate::ban_time::seconds)]
    pub(crate) seconds: Option<u64>,
    /// Why, for `outboard bans` and the log.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UnbanArguments {
    /// The address or network as it was banned.
    pub(crate) network: String,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

pub(crate) fn ban(arguments: &BanArguments, terminal: &Terminal) -> ExitCode {
    let BanArguments { network, seconds, reason, admin } = arguments;
    let add = Add { network: network.clone(), for_s: *seconds, reason: reason.clone() };
    admin::run(admin, terminal, &add, |page, changed| writeln!(page, "banned {}", changed.network))
}

pub(crate) fn unban(arguments: &UnbanArguments, terminal: &Terminal) -> ExitCode {
    let remove = Remove { network: arguments.network.clone() };
    admin::run_checked(&arguments.admin, terminal, &remove, |page, changed| {
        let network = &changed.network;
        match changed.was_banned {
            true => writeln!(page, "unbanned {network}")?,
            false => writeln!(page, "{network} is not banned; see outboard bans")?,
        }
        Ok(if changed.was_banned { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

pub(crate) fn list(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    admin::run(arguments, terminal, &List {}, |page, list| {
        if list.bans.is_empty() {
            return writeln!(page, "no address is banned");
        }
        list.bans.iter().try_for_each(|ban| {
            let rest = ban.until_s.map(|until_s| rest(until_s.saturating_sub(now_s)));
            let rest = rest.unwrap_or_else(|| "for good".to_owned());
            writeln!(page, "{:<24} {rest:<12} {}", ban.network, ban.reason)
        })
    })
}

/// A time in its largest units, such as `1h 5m`.
fn rest(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_ban_has_two_units() {
        assert_eq!([59, 61, 3_700, 90_000].map(rest), ["59s", "1m 1s", "1h 1m", "1d 1h"]);
    }
}
