//! [`Credentials`]: the user name and the password of a request.
//!
//! Read from an Authorization field. Invariant: `Debug` output does not contain the password.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

/// Longer ones are an attack on the hash function.
const MAX_BYTES: usize = 1 << 10;

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name of the user.
    pub user: String,
    /// The password, as it was sent.
    pub password: Vec<u8>,
}

impl Credentials {
    /// Reads the value of an Authorization field; `None` if it is not of this scheme or malformed.
    pub fn read(authorization: &[u8]) -> Option<Self> {
        let (scheme, token) = authorization.split_at_checked(b"Basic ".len())?;
        if !scheme.eq_ignore_ascii_case(b"Basic ") || token.len() > MAX_BYTES {
            return None;
        }
        let decoded = STANDARD.decode(token.trim_ascii()).ok()?;
        let colon = decoded.iter().position(|&byte| byte == b':')?;
        let user = String::from_utf8(decoded[..colon].to_vec()).ok()?;
        let password = decoded[colon + 1..].to_vec();
        // A hash function of C strings would end at a NUL.
        let is_text = !user.chars().any(char::is_control) && !password.contains(&0);
        (is_text && !user.is_empty()).then_some(Self { user, password })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_password_are_read() {
        let read = |text: &[u8]| Credentials::read(text);
        let expected = Credentials { user: "Aladdin".into(), password: b"open:sesame".to_vec() };
        let token = format!("basic  {}", STANDARD.encode("Aladdin:open:sesame"));
        assert_eq!(read(token.as_bytes()), Some(expected.clone()));
        assert!(!format!("{expected:?}").contains("sesame"));
        for bad in ["", "Basic", "Basic ", "Basic !", "Bearer QTpi", "Basic QQ==", "Basic OmE="] {
            assert_eq!(read(bad.as_bytes()), None, "{bad}");
        }
        for decoded in ["a:b\0c", "a\nb:c", &"a:b".repeat(1_000)] {
            let token = format!("Basic {}", STANDARD.encode(decoded));
            assert_eq!(read(token.as_bytes()), None);
        }
    }
}
