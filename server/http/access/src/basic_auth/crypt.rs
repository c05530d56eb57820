//! [`Crypt`]: the hashes of older `htpasswd` files: SHA-2 and MD5 of crypt(3), MD5 of Apache, SHA-1.
//!
//! Read by [`super::PasswordHash`]. Invariants: the work of a verification is bounded when the hash is accepted, and by
//! the longest password; the comparison takes the same time for every wrong password.

use super::unusable_hash::UnusableHash;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use sha_crypt::{PasswordVerifier, ShaCrypt};

/// These functions hash the password again and again. libxcrypt has the same limit (CRYPT_MAX_PASSPHRASE_SIZE).
const PASSWORD_MAX_BYTES: usize = 511;
/// A verification takes up to 2 s with this many rounds, and the longest password.
const SHA2_ROUNDS_MAX: u32 = 1_000_000;
/// glibc raises smaller numbers to this one.
const SHA2_ROUNDS_MIN: u32 = 1_000;
/// The digits of crypt(3), from 0 to 63.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// See the module.
#[derive(Clone)]
pub(super) enum Crypt {
    /// `$5$` and `$6$`, in whole.
    Sha2(String),
    /// `$apr1$` and `$1$`: what they start with, the salt and the hash.
    Md5 { magic: &'static str, salt: String, hash: String },
    /// `{SHA}`.
    Sha1(Vec<u8>),
}

impl Crypt {
    /// Reads a hash; `None` if it is of another kind.
    pub(super) fn parse(text: &str) -> Option<Result<Self, UnusableHash>> {
        let magic = ["$apr1$", "$1$", "$5$", "$6$", "{SHA}"];
        let magic = magic.into_iter().find(|magic| text.starts_with(magic))?;
        let rest = &text[magic.len()..];
        Some(match magic {
            "{SHA}" => match STANDARD.decode(rest) {
                Ok(hash) if hash.len() == 20 => Ok(Self::Sha1(hash)),
                _ => Err(UnusableHash::Malformed),
            },
            "$5$" => sha2(text, rest, 43),
            "$6$" => sha2(text, rest, 86),
            _ => match rest.split_once('$') {
                Some((salt, hash)) if are_digits(salt, 1..=8) && are_digits(hash, 22..=22) => {
                    Ok(Self::Md5 { magic, salt: salt.to_owned(), hash: hash.to_owned() })
                }
                _ => Err(UnusableHash::Malformed),
            },
        })
    }

    /// Whether the password has this hash.
    pub(super) fn verify(&self, password: &[u8]) -> bool {
        if password.len() > PASSWORD_MAX_BYTES {
            return false;
        }
        match self {
            Self::Sha2(hash) => ShaCrypt::default().verify_password(password, &**hash).is_ok(),
            Self::Md5 { magic, salt, hash } => {
                let computed = md5(password, magic.as_bytes(), salt.as_bytes());
                verify_slices_are_equal(&computed, hash.as_bytes()).is_ok()
            }
            Self::Sha1(hash) => {
                let computed = digest(&SHA1_FOR_LEGACY_USE_ONLY, password);
                verify_slices_are_equal(computed.as_ref(), hash).is_ok()
            }
        }
    }

    /// The kind, if passwords are guessed fast by it.
    pub(super) fn weakness(&self) -> Option<&'static str> {
        match self {
            Self::Sha2(_) => None,
            Self::Md5 { .. } => Some("MD5"),
            Self::Sha1(_) => Some("SHA-1"),
        }
    }

    /// What distinguishes it from other hashes.
    pub(super) fn identity(&self) -> Vec<u8> {
        match self {
            Self::Sha2(text) => text.clone().into_bytes(),
            Self::Md5 { salt, hash, .. } => [salt.as_bytes(), hash.as_bytes()].concat(),
            Self::Sha1(hash) => hash.clone(),
        }
    }
}

/// Reads `rounds=5000$SALT$HASH`, of which the rounds may be missing.
fn sha2(text: &str, rest: &str, hash_chars: usize) -> Result<Crypt, UnusableHash> {
    let (rounds, rest) = match rest.strip_prefix("rounds=").map(|rest| rest.split_once('$')) {
        None => (SHA2_ROUNDS_MIN, rest),
        Some(None) => return Err(UnusableHash::Malformed),
        Some(Some((rounds, rest))) => {
            let rounds = rounds.parse().ok().filter(|rounds| *rounds >= SHA2_ROUNDS_MIN);
            (rounds.ok_or(UnusableHash::Malformed)?, rest)
        }
    };
    if rounds > SHA2_ROUNDS_MAX {
        return Err(UnusableHash::Costly);
    }
    match rest.split_once('$') {
        Some((salt, hash))
            if are_digits(salt, 1..=16) && are_digits(hash, hash_chars..=hash_chars) =>
        {
            Ok(Crypt::Sha2(text.to_owned()))
        }
        _ => Err(UnusableHash::Malformed),
    }
}

/// Whether a text of such a length has only digits of crypt(3).
pub(super) fn are_digits(text: &str, lengths: std::ops::RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| DIGITS.contains(&byte))
}

/// MD5 of crypt(3) in digits, as Poul-Henning Kamp wrote it; Apache's `apr_md5_encode` has another magic.
fn md5(password: &[u8], magic: &[u8], salt: &[u8]) -> Vec<u8> {
    let mut hash = Md5::new_with_prefix([password, salt, password].concat()).finalize();
    let mut first = Md5::new_with_prefix([password, magic, salt].concat());
    password.chunks(16).for_each(|chunk| first.update(&hash[..chunk.len()]));
    let mut length = password.len();
    while length > 0 {
        first.update(if length & 1 == 1 { &[0] } else { &password[..1] });
        length >>= 1;
    }
    hash = first.finalize();
    for round in 0..1_000 {
        let mut next = Md5::new();
        let is_odd = round % 2 == 1;
        next.update(if is_odd { password } else { &hash });
        next.update(if round % 3 == 0 { &[] } else { salt });
        next.update(if round % 7 == 0 { &[] } else { password });
        next.update(if is_odd { &hash } else { password });
        hash = next.finalize();
    }
    let groups = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let number = |[high, middle, low]: [usize; 3]| {
        u32::from_be_bytes([0, hash[high], hash[middle], hash[low]])
    };
    let numbers = groups.map(number).into_iter().map(|number| (number, 4));
    let numbers = numbers.chain([(u32::from(hash[11]), 2)]);
    let digit = |number: u32, index: u32| DIGITS[((number >> (6 * index)) & 63) as usize];
    numbers
        .flat_map(|(number, digits)| (0..digits).map(move |index| digit(number, index)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Crypt, UnusableHash> {
        Crypt::parse(text).unwrap_or_else(|| panic!("{text} is of another kind"))
    }

    /// Of `openssl passwd` and `htpasswd`.
    const HASHES: [(&str, &str); 10] = [
        ("secret", "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/"),
        ("", "$apr1$ab$S8K6Sgp3W8c9Jb6LxgywZ."),
        ("a longer password with more than sixteen bytes", "$apr1$12345678$MTmhL9UCLzSxp9RmTZ2mB/"),
        ("secret", "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1"),
        ("secret", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="),
        ("secret", "$5$saltstring$C3o4O1TC6aRHF4FI.QSZMXtHbaj2gSXr4sUc/3NcUi."),
        (
            "secret",
            "$6$saltstring$AIsRs/Ee56G/tC8MEHhvReZTfx8u3rXXMl6eYrjCG9ibix19DxoMBLogdTET5Ukw9Sf7eZTITsuk0Ry5qulYz.",
        ),
        (
            "secret",
            "$6$rounds=1000$saltstring$2BkAo106CG84raQcWpAlhyy6TSSkAsL1nfvBCoezLYyerUzY2l8axTvq6NynEt7SQAx3/cdop9ds0po8uaeHq0",
        ),
        ("", "$5$x$yHbtfs4Y8t6X1xcJemNX.4JQRfUTafA2qQenWGLBee2"),
        (
            "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
            "$6$0123456789abcdef$ARtoNmrEIGa2MYPScJQw.5T4HJGxA900i0BiFw/qCqBur/LmmNHE0YDUfzYUUXiWVHnX5f56I.COffJo9SgWb.",
        ),
    ];

    #[test]
    fn hashes_of_other_programs_are_verified() {
        for (password, text) in HASHES {
            let hash = parse(text).unwrap();
            assert!(hash.verify(password.as_bytes()), "{text}");
            for wrong in ["secreT", "secret ", "secre", "\0", "x"] {
                assert!(!hash.verify(wrong.as_bytes()), "{text}");
            }
        }
    }

    #[test]
    fn a_password_of_any_length_costs_little() {
        for (_, text) in HASHES {
            assert!(!parse(text).unwrap().verify(&[b'a'; PASSWORD_MAX_BYTES]), "{text}");
            assert!(!parse(text).unwrap().verify(&[b'a'; 1 << 20]), "{text}");
        }
    }

    #[test]
    fn weak_kinds_are_named() {
        let weakness = |text: &str| parse(text).unwrap().weakness();
        let of_hashes = HASHES.map(|(_, text)| weakness(text));
        assert_eq!(
            of_hashes[..5],
            [Some("MD5"), Some("MD5"), Some("MD5"), Some("MD5"), Some("SHA-1")]
        );
        assert_eq!(of_hashes[5..], [None; 5]);
    }

    #[test]
    fn cut_and_costly_hashes_are_refused() {
        let sha2 = HASHES[6].1;
        for (text, expected) in [
            ("$apr1$".to_owned(), UnusableHash::Malformed),
            ("$apr1$ab$cd".to_owned(), UnusableHash::Malformed),
            ("$apr1$$S8K6Sgp3W8c9Jb6LxgywZ.".to_owned(), UnusableHash::Malformed),
            ("$apr1$123456789$S8K6Sgp3W8c9Jb6LxgywZ.".to_owned(), UnusableHash::Malformed),
            ("$1$ab$S8K6Sgp3W8c9Jb6Lxgyw\u{e9}".to_owned(), UnusableHash::Malformed),
            ("{SHA}".to_owned(), UnusableHash::Malformed),
            ("{SHA}YQ==".to_owned(), UnusableHash::Malformed),
            ("$5$salt$".to_owned(), UnusableHash::Malformed),
            ("$6$salt".to_owned(), UnusableHash::Malformed),
            (sha2[..sha2.len() - 1].to_owned(), UnusableHash::Malformed),
            (format!("{sha2}$"), UnusableHash::Malformed),
            (sha2.replace("$6$", "$5$"), UnusableHash::Malformed),
            (sha2.replace("$6$", "$6$rounds=999$"), UnusableHash::Malformed),
            (sha2.replace("$6$", "$6$rounds=-1$"), UnusableHash::Malformed),
            (sha2.replace("$6$", "$6$rounds=1000001$"), UnusableHash::Costly),
            (sha2.replace("$6$", "$6$rounds=99999999999$"), UnusableHash::Malformed),
        ] {
            assert_eq!(parse(&text).err(), Some(expected), "{text}");
        }
        assert!(Crypt::parse("$2y$10$").is_none() && Crypt::parse("secret").is_none());
    }
}
