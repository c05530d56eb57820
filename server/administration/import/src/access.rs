//! [`AccessRule`]: which clients may request some paths, as both servers express it.
//!
//! Filled by the translators. Invariant: a rule refuses at least the clients that the other server refuses.

use crate::draft::{App, strings, text};
use std::net::IpAddr;
use toml::{Table, Value};

/// The addresses of this machine.
pub(crate) const LOCAL: [&str; 2] = ["127.0.0.0/8", "::1"];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct AccessRule {
    /// The networks whose clients are admitted; empty: all.
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    /// The file of passwords.
    pub(crate) password_file: Option<String>,
    pub(crate) realm: Option<String>,
    pub(crate) rate: Option<Rate>,
}

/// How often a client may send requests.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    pub(crate) rate: String,
    pub(crate) burst: i64,
    pub(crate) key: String,
}

impl AccessRule {
    /// Adds it for paths with these patterns; `None`: for all paths.
    pub(crate) fn add_to(&self, app: &mut App, patterns: Option<&[String]>) {
        let keys = self.keys();
        if keys.is_empty() {
            return;
        }
        match patterns {
            None => app.push("access", Value::Table(keys)),
            Some(patterns) => {
                for pattern in patterns {
                    let mut rule = Table::new();
                    rule.insert("path".to_owned(), text(pattern));
                    rule.extend(keys.clone());
                    app.push("access", Value::Table(rule));
                }
            }
        }
    }

    fn keys(&self) -> Table {
        let mut keys = Table::new();
        for (key, networks) in [("allow", &self.allow), ("deny", &self.deny)] {
            if !networks.is_empty() {
                keys.insert(key.to_owned(), strings(networks.iter().cloned()));
            }
        }
        if let Some(file) = &self.password_file {
            let mut auth = Table::new();
            if let Some(realm) = &self.realm {
                auth.insert("realm".to_owned(), text(realm));
            }
            auth.insert("file".to_owned(), text(file));
            keys.insert("basic_auth".to_owned(), Value::Table(auth));
        }
        if let Some(Rate { rate, burst, key }) = &self.rate {
            let mut limit = Table::new();
            limit.insert("rate".to_owned(), text(rate));
            limit.insert("burst".to_owned(), (*burst).into());
            limit.insert("key".to_owned(), text(key));
            keys.insert("rate_limit".to_owned(), Value::Table(limit));
        }
        keys
    }
}

/// An address or a network as Outboard writes it; also with a mask, or with the first numbers of an IPv4
/// address (mod_authz_host). `None` for names of hosts.
pub(crate) fn network(written: &str) -> Option<String> {
    let Some((address, mask)) = written.split_once('/') else {
        return match written.parse::<IpAddr>() {
            Ok(address) => Some(address.to_string()),
            Err(_) => first_numbers(written),
        };
    };
    let address: IpAddr = address.parse().ok()?;
    let bits = match mask.parse::<u32>() {
        Ok(bits) => bits,
        Err(_) => {
            let mask = u32::from(mask.parse::<std::net::Ipv4Addr>().ok()?);
            (mask.leading_ones() == mask.count_ones()).then(|| mask.count_ones())?
        }
    };
    (bits <= if address.is_ipv4() { 32 } else { 128 }).then(|| format!("{address}/{bits}"))
}

fn first_numbers(written: &str) -> Option<String> {
    let numbers: Option<Vec<u8>> =
        written.trim_end_matches('.').split('.').map(|number| number.parse().ok()).collect();
    let mut octets = numbers?;
    let bits = 8 * octets.len();
    octets.resize(4, 0);
    let [a, b, c, d] = octets.try_into().ok()?;
    (bits < 32).then(|| format!("{a}.{b}.{c}.{d}/{bits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_written_with_the_number_of_bits() {
        for (written, expected) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.1.0.0/255.255.0.0", Some("10.1.0.0/16")),
            ("10.1", Some("10.1.0.0/16")),
            ("10.1.2.", Some("10.1.2.0/24")),
            ("10.0.0.0/255.0.255.0", None),
            ("10.0.0.0/33", None),
            ("example.org", None),
            ("10.1.2.3.4", None),
            ("", None),
        ] {
            assert_eq!(network(written).as_deref(), expected, "{written}");
        }
    }
}
