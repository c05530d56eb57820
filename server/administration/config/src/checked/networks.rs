//! Networks by name: well-known ones, and those of `[networks]`.
//!
//! Called where a section lists peers. Invariant: a name that is not known is reported; it never stands for nobody or for all.

use super::context::{Context, Networks};
use crate::diagnostic::Kind;
use crate::disk::reason;
use crate::raw::OneOrMany;
use crate::scalar::{Fault, Network, Peer, PlainText};
use std::collections::BTreeMap;

/// Lists of the providers as they were when this version was released.
const WELL_KNOWN: [(&str, &str); 3] = [
    ("cloudflare", include_str!("../networks/cloudflare.txt")),
    ("fastly", include_str!("../networks/fastly.txt")),
    ("private", include_str!("../networks/private.txt")),
];

/// More than any provider has.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// The well-known networks, and those that the file adds or replaces.
pub(super) fn networks(
    raw: &BTreeMap<String, OneOrMany<PlainText>>,
    context: &mut Context<'_>,
) -> Networks {
    let of_text = |text| read(text).expect("the lists of the program are valid");
    let well_known = WELL_KNOWN.iter().map(|(name, text)| ((*name).to_owned(), of_text(text)));
    let mut all: Networks = well_known.collect();
    for (name, entries) in raw {
        let place = ["networks", name];
        if name == "unix" {
            context.key(&place, Kind::Conflict, Fault::new("`unix` stands for Unix sockets"));
        }
        let mut networks = Vec::new();
        for PlainText(entry) in entries.as_slice() {
            match entry.parse() {
                Ok(network) => networks.push(network),
                Err(_) => networks.extend(of_file(entry, &place, context)),
            }
        }
        // A rule for nobody would be one for all.
        if entries.as_slice().is_empty() || networks.is_empty() && context.diagnostics.is_empty() {
            context.value(&place, Kind::BadValue, Fault::new("there is no network in the list"));
        }
        all.insert(name.clone(), networks);
    }
    all
}

/// The networks of a file.
fn of_file(entry: &str, place: &[&str], context: &mut Context<'_>) -> Vec<Network> {
    let path = context.absolute(entry.as_ref());
    let (kind, why) = match context.disk.read(&path, FILE_MAX_BYTES) {
        Ok(bytes) if bytes.len() as u64 > FILE_MAX_BYTES => {
            (Kind::BadValue, "it is too large".to_owned())
        }
        Ok(bytes) => match read(&String::from_utf8_lossy(&bytes)) {
            Ok(networks) => return networks,
            Err(why) => (Kind::BadValue, why),
        },
        Err(error) => (Kind::Path, reason(&error)),
    };
    let fault = Fault::new(format!("`{entry}` is neither a network nor a file of networks: {why}"))
        .hint("a network such as \"10.0.0.0/8\", or a file with one in each line");
    context.value(place, kind, fault);
    Vec::new()
}

/// A network in each line; `#` begins a comment.
fn read(text: &str) -> Result<Vec<Network>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let networks = lines.enumerate().filter(|(_, line)| !line.is_empty());
    networks
        .map(|(index, line)| line.parse().map_err(|_| format!("line {} is none", index + 1)))
        .collect()
}

impl Context<'_> {
    /// The peers with the networks that names stand for.
    pub(super) fn peers(&mut self, place: &[&str], written: &[Peer]) -> Vec<Peer> {
        let mut peers = Vec::new();
        for peer in written {
            let Peer::Named(name) = peer else {
                peers.push(peer.clone());
                continue;
            };
            match self.networks.get(name) {
                Some(networks) => peers.extend(networks.iter().copied().map(Peer::Network)),
                None => {
                    let known: Vec<&str> = self.networks.keys().map(String::as_str).collect();
                    let hint = match name.to_ascii_lowercase().as_str() {
                        "all" | "any" => "every client is in \"0.0.0.0/0\" and \"::/0\"".to_owned(),
                        "localhost" | "local" => "write \"127.0.0.0/8\" and \"::1\"".to_owned(),
                        _ => format!("an address, a network, or one of: {}", known.join(", ")),
                    };
                    let fault = Fault::new(format!("`{name}` is not a network")).hint(hint);
                    self.value(place, Kind::BadValue, fault);
                }
            }
        }
        peers
    }
}

#[cfg(test)]
mod tests {
    use crate::Kind;
    use crate::checked::testing::{APP, assert_error, valid};

    #[test]
    fn names_stand_for_networks() {
        let text = format!(
            "trusted_proxies = [\"cloudflare\", \"office\"]\n[networks]\n\
             office = [\"192.0.2.0/28\", \"2001:db8::/48\"]\n{APP}"
        );
        let forwarding = &valid(&text).listeners[0].forwarding;
        for (address, is_trusted) in [
            ("104.16.0.1", true),
            ("2606:4700::1", true),
            ("192.0.2.15", true),
            ("192.0.2.16", false),
            ("2001:db8::1", true),
            ("127.0.0.1", false),
        ] {
            assert_eq!(forwarding.trusts(Some(address.parse().unwrap())), is_trusted, "{address}");
        }
    }

    #[test]
    fn a_list_in_the_file_replaces_a_well_known_one() {
        let text =
            format!("trusted_proxies = [\"fastly\"]\n[networks]\nfastly = \"192.0.2.1\"\n{APP}");
        let networks = &valid(&text).listeners[0].forwarding.trusted_proxies;
        assert_eq!(networks[..], ["192.0.2.1".parse().unwrap()]);
    }

    #[test]
    fn an_unknown_network_is_an_error() {
        let proxies = |list: &str| format!("trusted_proxies = [{list}]\n{APP}");
        assert_error(&proxies("\"cloudflair\""), Kind::BadValue, 1, "cloudflare, fastly, private");
        let access = format!("{APP}[[app.site.access]]\nallow = [\"ofice\"]\n");
        assert_error(&access, Kind::BadValue, 4, "`ofice` is not a network");
        // The content of a file in tests is no network.
        let networks = |entry: &str| format!("[networks]\na = {entry}\n{APP}");
        assert_error(&networks("\"list.txt\""), Kind::BadValue, 2, "line 1 is none");
        assert_error(&networks("[\"10.0.0.0/33\"]"), Kind::BadValue, 2, "neither a network nor");
    }
}
