//! [`Secret`]: a random token, and the comparison with what a client sends.
//!
//! Invariant: the time of a comparison does not depend on where the texts differ.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new one with 256 random bits.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub fn new() -> io::Result<Self> {
        let mut bytes = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// In hexadecimal digits.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether it is this text.
    pub fn is(&self, text: &[u8]) -> bool {
        let differences = self.0.bytes().zip(text).fold(0, |sum, (own, theirs)| sum | own ^ theirs);
        text.len() == self.0.len() && std::hint::black_box(differences) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_is_it() {
        let secret = Secret::new().expect("random bytes");
        let text = secret.reveal().to_owned();
        assert!(text.len() == 64 && secret.is(text.as_bytes()));
        assert!(!secret.is(&text.as_bytes()[..63]) && !secret.is(b""));
        assert!(!secret.is(format!("{text}0").as_bytes()));
        let mut other = text.clone().into_bytes();
        other[63] ^= 1;
        assert!(!secret.is(&other) && Secret::new().expect("random bytes") != secret);
        assert!(!format!("{secret:?}").contains(&text));
    }
}
