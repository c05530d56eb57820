//! The country of an address, by a MaxMind database.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::disk::reason;
use crate::scalar::Fault;
use maxminddb::{PathElement, Reader};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// Larger than the databases of cities.
const MAX_BYTES: u64 = 256 << 20;

/// See the module.
#[derive(Clone)]
pub struct Countries(Arc<Reader<Vec<u8>>>);

impl Countries {
    /// The code of the country (ISO 3166-1); `None` if the database does not know the address.
    pub fn of(&self, address: IpAddr) -> Option<&str> {
        let found = self.0.lookup(address.to_canonical()).ok()?;
        let code = |owner| [PathElement::Key(owner), PathElement::Key("iso_code")];
        let read = |owner| found.decode_path::<&str>(&code(owner)).ok().flatten();
        read("country").or_else(|| read("registered_country"))
    }

    fn read(bytes: Vec<u8>) -> Result<Self, String> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err("it is too large".to_owned());
        }
        Reader::from_source(bytes)
            .map(|reader| Self(Arc::new(reader)))
            .map_err(|error| error.to_string())
    }
}

impl fmt::Debug for Countries {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Countries")
    }
}

/// The database at `country_database`.
pub(super) fn countries(written: Option<&Path>, context: &mut Context<'_>) -> Option<Countries> {
    let path = context.absolute(written?);
    let read = context.disk.read(&path, MAX_BYTES).map_err(|error| reason(&error));
    match read.and_then(Countries::read) {
        Ok(countries) => Some(countries),
        Err(why) => {
            let fault =
                Fault::new(format!("`{}` is not a database of countries: {why}", path.display()))
                    .hint(
                        "a file such as GeoLite2-Country.mmdb (MaxMind) or dbip-country-lite.mmdb",
                    );
            context.value(&["country_database"], Kind::Path, fault);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, valid};

    #[test]
    fn an_address_has_the_country_of_its_network() {
        let config = valid(&format!("country_database = \"Test-Country.mmdb\"\n{APP}"));
        let countries = config.countries.unwrap();
        for (address, code) in [
            ("192.0.2.1", Some("DE")),
            ("::ffff:192.0.2.1", Some("DE")),
            ("198.51.100.255", Some("FR")),
            ("2001:db8:1::1", Some("AT")),
            ("192.0.3.1", None),
            ("::1", None),
        ] {
            assert_eq!(countries.of(address.parse().unwrap()), code, "{address}");
        }
    }
}
