//! Content codings of stored bodies: which ones there are, and which one a client gets
//! (RFC 9110 12.5.3).

use crate::list;

/// A coding that bodies are kept in beside their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
    /// `gzip`.
    Gzip,
}

impl Coding {
    /// All of them, the smallest result first.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// As it stands in Content-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    fn is_called(self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.token().as_bytes())
            || (self == Self::Gzip && name.eq_ignore_ascii_case(b"x-gzip"))
    }
}

/// The coding that a client with this Accept-Encoding gets what is made for it in; `None` for the
/// body as it is.
pub fn best(accept_encoding: Option<&[u8]>) -> Option<Coding> {
    choose(accept_encoding, Coding::ALL.into_iter())
}

/// The best of `kept` for a client with this Accept-Encoding; `None` for the body as it is.
pub(crate) fn choose(
    accept_encoding: Option<&[u8]>,
    kept: impl Iterator<Item = Coding>,
) -> Option<Coding> {
    let accepted = accept_encoding?;
    let plain = weight(accepted, |name| name.eq_ignore_ascii_case(b"identity")).unwrap_or(1);
    let mut best = None;
    for coding in kept {
        let own = weight(accepted, |name| coding.is_called(name));
        let any = || weight(accepted, |name| name == b"*");
        let weight = own.or_else(any).unwrap_or(0);
        if weight > best.map_or(0, |(_, weight)| weight) {
            best = Some((coding, weight));
        }
    }
    best.filter(|(_, weight)| *weight >= plain).map(|(coding, _)| coding)
}

/// The weight in thousandths of the first element whose name is meant.
fn weight(accepted: &[u8], is_meant: impl Fn(&[u8]) -> bool) -> Option<u16> {
    list::elements(accepted).find_map(|element| {
        let mut parts = list::split(element, b';');
        if !is_meant(parts.next().unwrap_or_default()) {
            return None;
        }
        let quality = parts.map(list::name_and_argument);
        let quality = quality.filter(|(name, _)| name.eq_ignore_ascii_case(b"q"));
        Some(
            quality
                .map(|(_, weight)| weight.and_then(thousandths).unwrap_or(0))
                .next()
                .unwrap_or(1000),
        )
    })
}

/// `0.123` or `1.000` (RFC 9110 12.4.2), in thousandths.
pub(crate) fn thousandths(text: &[u8]) -> Option<u16> {
    let (whole, part) = match text.trim_ascii() {
        [whole] => (*whole, &[][..]),
        [whole, b'.', part @ ..] if part.len() <= 3 => (*whole, part),
        _ => return None,
    };
    if !part.iter().all(u8::is_ascii_digit) {
        return None;
    }
    match whole {
        b'1' => Some(1000),
        b'0' => {
            let digits = [100, 10, 1].iter().zip(part);
            Some(digits.map(|(place, digit)| place * u16::from(digit - b'0')).sum())
        }
        _ => None,
    }
}

/// Whether bodies of this type become much smaller.
pub fn is_compressible(content_type: &[u8]) -> bool {
    let essence = list::split(content_type, b';').next().unwrap_or_default().to_ascii_lowercase();
    let is = |known: &[u8]| essence == known;
    essence.starts_with(b"text/")
        || essence.ends_with(b"+xml")
        || essence.ends_with(b"+json")
        || is(b"application/json")
        || is(b"application/javascript")
        || is(b"application/xml")
        || is(b"application/wasm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_encoding_decides() {
        for (field, expected) in [
            ("", None),
            ("gzip", Some("gzip")),
            ("x-gzip", Some("gzip")),
            ("gzip, br", Some("br")),
            ("gzip, zstd", Some("zstd")),
            ("GZIP;q=0.5, br;q=0.1", Some("gzip")),
            ("gzip;q=0.5, identity;q=0.2", Some("gzip")),
            ("br;q=0, gzip", Some("gzip")),
            ("*", Some("br")),
            ("*;q=0", None),
            ("br;q=0, *", Some("zstd")),
            ("identity;q=0, *;q=0.1", Some("br")),
            ("gzip;q=2", None),
            ("gzip;q=1.000", Some("gzip")),
            ("deflate", None),
        ] {
            let chosen = choose(Some(field.as_bytes()), Coding::ALL.into_iter());
            assert_eq!(chosen.map(Coding::token), expected, "{field}");
        }
        assert_eq!(choose(None, Coding::ALL.into_iter()), None);
    }
}
