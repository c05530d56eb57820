//! [`Secret`]: a password, a token or a key.

use super::kind::{Fault, Scalar, Written};
use super::name::PlainText;
use std::fmt;

/// A string that `Debug` output does not reveal.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Secret")
    }
}

impl Scalar for Secret {
    const NAME: &'static str = PlainText::NAME;
    const EXPECTED: &'static str = PlainText::EXPECTED;

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        PlainText::read(written).map(|text| Self(text.0))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_secret() {
        assert!(!format!("{:?}", Secret("hidden".to_owned())).contains("hidden"));
    }
}
