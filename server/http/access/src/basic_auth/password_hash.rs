//! [`PasswordHash`]: the hash of a password, by bcrypt, Argon2 or an older function.
//!
//! Parsed from configuration and `htpasswd` files. Invariants: the work and the memory of a verification are
//! bounded when the hash is accepted; the comparison takes the same time for every wrong password.

use super::crypt::{self, Crypt};
use super::unusable_hash::UnusableHash;
use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::fmt;

/// A verification takes about 4 s with this bcrypt cost; each step more doubles that.
const BCRYPT_COST_MAX: u32 = 16;
/// Memory of a verification by Argon2, in KiB.
const ARGON2_MEMORY_MAX_KIB: u32 = 256 << 10;
/// Passes over the memory, and lanes.
const ARGON2_ROUNDS_MAX: u32 = 16;
/// Of an Argon2 hash or salt.
const ARGON2_BYTES_MAX: usize = 64;

/// See the module.
#[derive(Clone)]
pub struct PasswordHash(Kind);

#[derive(Clone)]
enum Kind {
    Bcrypt(String),
    Argon2 { algorithm: Algorithm, params: Params, salt: Vec<u8>, hash: Vec<u8> },
    Crypt(Crypt),
}

impl PasswordHash {
    /// Reads a hash in the form of crypt(3) or PHC.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn parse(text: &str) -> Result<Self, UnusableHash> {
        if text.starts_with("$2x$") {
            return Err(UnusableHash::Weak("a faulty bcrypt"));
        }
        // Of a password's first 8 characters.
        if crypt::are_digits(text, 13..=13) {
            return Err(UnusableHash::Weak("DES of crypt"));
        }
        if let Some(crypt) = Crypt::parse(text) {
            return crypt.map(|crypt| Self(Kind::Crypt(crypt)));
        }
        if ["$2a$", "$2b$", "$2y$"].iter().any(|start| text.starts_with(start)) {
            return bcrypt(text);
        }
        match text.strip_prefix("$argon2") {
            Some(rest) => argon2(rest),
            None => Err(UnusableHash::Unknown),
        }
    }

    /// Whether the password has this hash. This takes long: call it on a thread. bcrypt reads 72 bytes of a
    /// password, as with every program that has made such hashes.
    pub fn verify(&self, password: &[u8]) -> bool {
        match &self.0 {
            Kind::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Kind::Crypt(crypt) => crypt.verify(password),
            Kind::Argon2 { algorithm, params, salt, hash } => {
                let argon2 = Argon2::new(*algorithm, Version::V0x13, params.clone());
                let mut computed = vec![0; hash.len()];
                argon2.hash_password_into(password, salt, &mut computed).is_ok()
                    && verify_slices_are_equal(&computed, hash).is_ok()
            }
        }
    }

    /// The kind, if passwords are guessed fast by it.
    pub fn weakness(&self) -> Option<&'static str> {
        match &self.0 {
            Kind::Crypt(crypt) => crypt.weakness(),
            Kind::Bcrypt(_) | Kind::Argon2 { .. } => None,
        }
    }

    /// What distinguishes it from other hashes.
    pub(super) fn identity(&self) -> Vec<u8> {
        match &self.0 {
            Kind::Bcrypt(hash) => hash.clone().into_bytes(),
            Kind::Crypt(crypt) => crypt.identity(),
            Kind::Argon2 { salt, hash, .. } => [&salt[..], hash].concat(),
        }
    }
}

fn bcrypt(text: &str) -> Result<PasswordHash, UnusableHash> {
    let parts: Result<bcrypt::HashParts, _> = text.parse();
    let cost = parts.map_err(|_| UnusableHash::Malformed)?.get_cost();
    match cost <= BCRYPT_COST_MAX {
        true => Ok(PasswordHash(Kind::Bcrypt(text.to_owned()))),
        false => Err(UnusableHash::Costly),
    }
}

/// Reads `id$v=19$m=65536,t=3,p=4$SALT$HASH`.
fn argon2(rest: &str) -> Result<PasswordHash, UnusableHash> {
    let parts: Vec<&str> = rest.split('$').collect();
    let [kind, "v=19", costs, salt, hash] = parts[..] else {
        return Err(UnusableHash::Malformed);
    };
    let algorithm = match kind {
        "id" => Algorithm::Argon2id,
        "i" => Algorithm::Argon2i,
        "d" => Algorithm::Argon2d,
        _ => return Err(UnusableHash::Malformed),
    };
    let cost = |name: &str| {
        let mut costs = costs.split(',').filter_map(|cost| cost.split_once('='));
        let (_, number) = costs.find(|(found, _)| *found == name)?;
        number.parse::<u32>().ok()
    };
    let (Some(memory), Some(passes), Some(lanes)) = (cost("m"), cost("t"), cost("p")) else {
        return Err(UnusableHash::Malformed);
    };
    if memory > ARGON2_MEMORY_MAX_KIB || passes.max(lanes) > ARGON2_ROUNDS_MAX {
        return Err(UnusableHash::Costly);
    }
    let decode = |text| STANDARD_NO_PAD.decode(text).map_err(|_| UnusableHash::Malformed);
    let (salt, hash): (Vec<u8>, Vec<u8>) = (decode(salt)?, decode(hash)?);
    if salt.len().max(hash.len()) > ARGON2_BYTES_MAX || salt.len() < 8 || hash.len() < 16 {
        return Err(UnusableHash::Malformed);
    }
    let params = Params::new(memory, passes, lanes, Some(hash.len()));
    let params = params.map_err(|_| UnusableHash::Malformed)?;
    Ok(PasswordHash(Kind::Argon2 { algorithm, params, salt, hash }))
}

/// Hashes are secrets too.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the hash.
    const ARGON2: &str = "$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzYWx0$";

    #[test]
    fn hashes_of_bcrypt_are_verified() {
        let hash = bcrypt::hash_with_salt(b"secret", 4, *b"0123456789abcdef").unwrap();
        for version in [bcrypt::Version::TwoA, bcrypt::Version::TwoB, bcrypt::Version::TwoY] {
            let hash = PasswordHash::parse(&hash.format_for_version(version)).unwrap();
            assert!(hash.verify(b"secret"));
            for wrong in [&b""[..], b"Secret", b"secret ", &[b's'; 100]] {
                assert!(!hash.verify(wrong));
            }
        }
    }

    #[test]
    fn hashes_of_argon2_are_verified() {
        let params = Params::new(64, 2, 1, Some(32)).unwrap();
        let mut out = [0; 32];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon2.hash_password_into(b"secret", b"somesaltsalt", &mut out).unwrap();
        let hash = format!("{ARGON2}{}", STANDARD_NO_PAD.encode(out));
        let hash = PasswordHash::parse(&hash).unwrap();
        assert!(hash.verify(b"secret") && !hash.verify(b"secreT"));
    }

    #[test]
    fn weak_costly_and_malformed_hashes_are_refused() {
        let parse = |text: &str| PasswordHash::parse(text).err();
        assert_eq!(parse("secret"), Some(UnusableHash::Unknown));
        assert_eq!(parse(""), Some(UnusableHash::Unknown));
        assert_eq!(parse("$2x$10$"), Some(UnusableHash::Weak("a faulty bcrypt")));
        assert_eq!(parse("TL.L6AZaSHlvc"), Some(UnusableHash::Weak("DES of crypt")));
        assert_eq!(parse("$apr1$ab$cd"), Some(UnusableHash::Malformed));
        assert_eq!(parse("{SHA}YQ=="), Some(UnusableHash::Malformed));
        assert_eq!(parse("$2y$10$short"), Some(UnusableHash::Malformed));
        let costly = bcrypt::hash_with_salt(b"secret", 4, *b"0123456789abcdef").unwrap();
        let costly = costly.to_string().replace("$04$", "$31$");
        assert_eq!(parse(&costly), Some(UnusableHash::Costly));
        let hash = "c29tZXNhbHRzYWx0c29tZXNhbHQ";
        for (costs, expected) in [
            ("m=64,t=2,p=1", None),
            ("m=4294967295,t=2,p=1", Some(UnusableHash::Costly)),
            ("m=64,t=4000000,p=1", Some(UnusableHash::Costly)),
            ("m=64,t=2", Some(UnusableHash::Malformed)),
            ("m=1,t=2,p=4", Some(UnusableHash::Malformed)),
        ] {
            let text = format!("$argon2id$v=19${costs}$c29tZXNhbHRzYWx0${hash}");
            assert_eq!(parse(&text), expected, "{costs}");
        }
        assert_eq!(parse("$argon2id$v=16$m=64,t=2,p=1$YQ$YQ"), Some(UnusableHash::Malformed));
    }
}
