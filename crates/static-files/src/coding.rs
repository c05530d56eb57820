//! Content codings of pre-compressed siblings, and the choice among them by Accept-Encoding
//! (RFC 9110 section 12.5.3). Pure.

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// The file as it is.
    Identity,
    /// `br`, RFC 7932.
    Brotli,
    /// `zstd`, RFC 8878.
    Zstd,
    /// `gzip`, RFC 1952.
    Gzip,
}

/// The codings of siblings, best first: decides between equal weights.
pub(crate) const SIBLINGS: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

impl Coding {
    /// The name in Accept-Encoding and Content-Encoding.
    pub fn token(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// What a sibling's name adds to the name of the file.
    pub(crate) fn suffix(self) -> &'static [u8] {
        match self {
            Self::Identity => b"",
            Self::Brotli => b".br",
            Self::Zstd => b".zst",
            Self::Gzip => b".gz",
        }
    }
}

/// The weights of one Accept-Encoding field, in thousandths; `None` where it says nothing.
#[derive(Debug, Default, Clone, Copy)]
struct Weights {
    identity: Option<u16>,
    brotli: Option<u16>,
    zstd: Option<u16>,
    gzip: Option<u16>,
    any: Option<u16>,
}

impl Weights {
    fn parse(field: &[u8]) -> Self {
        let mut weights = Self::default();
        for element in field.split(|&byte| byte == b',') {
            let mut parts = element.split(|&byte| byte == b';');
            let token = parts.next().unwrap_or_default().trim_ascii();
            let weight = parts.map(weight).next().unwrap_or(1000);
            let slot = match token {
                b"*" => &mut weights.any,
                _ if token.eq_ignore_ascii_case(b"identity") => &mut weights.identity,
                _ if token.eq_ignore_ascii_case(b"br") => &mut weights.brotli,
                _ if token.eq_ignore_ascii_case(b"zstd") => &mut weights.zstd,
                _ if token.eq_ignore_ascii_case(b"gzip") => &mut weights.gzip,
                // RFC 9110 section 8.4.1.3: a synonym.
                _ if token.eq_ignore_ascii_case(b"x-gzip") => &mut weights.gzip,
                _ => continue,
            };
            *slot = Some(weight);
        }
        weights
    }

    /// 0 refuses the coding.
    fn of(&self, coding: Coding) -> u16 {
        match coding {
            Coding::Brotli => self.brotli.or(self.any).unwrap_or(0),
            Coding::Zstd => self.zstd.or(self.any).unwrap_or(0),
            Coding::Gzip => self.gzip.or(self.any).unwrap_or(0),
            // Not listed, identity is acceptable but less wanted than anything that is listed. And
            // refused or not, it is what remains when no sibling fits.
            Coding::Identity => self.identity.unwrap_or(0),
        }
    }
}

/// A `q=0.5` parameter in thousandths; a weight that cannot be read refuses the coding.
fn weight(parameter: &[u8]) -> u16 {
    let Some((b'q' | b'Q', value)) = parameter.trim_ascii().split_first() else { return 0 };
    let Some(value) = value.strip_prefix(b"=") else { return 0 };
    match value {
        b"1" | b"1." | b"1.0" | b"1.00" | b"1.000" => 1000,
        b"0" => 0,
        [b'0', b'.', digits @ ..] if digits.len() <= 3 => {
            let mut thousandths = 0;
            for place in 0..3 {
                let digit = digits.get(place).copied().unwrap_or(b'0');
                if !digit.is_ascii_digit() {
                    return 0;
                }
                thousandths = thousandths * 10 + u16::from(digit - b'0');
            }
            thousandths
        }
        _ => 0,
    }
}

/// The index of the sibling to send, or `None` for the file itself. A request without
/// Accept-Encoding gets the file itself.
pub(crate) fn choose(
    accept_encoding: Option<&[u8]>,
    siblings: impl Iterator<Item = Coding>,
) -> Option<usize> {
    let weights = Weights::parse(accept_encoding?);
    let mut best = None;
    let mut best_weight = 0;
    for (index, coding) in siblings.enumerate() {
        let weight = weights.of(coding);
        if weight > best_weight {
            (best, best_weight) = (Some(index), weight);
        }
    }
    if best_weight < weights.of(Coding::Identity) { None } else { best }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(field: Option<&str>, available: &[Coding]) -> Coding {
        choose(field.map(str::as_bytes), available.iter().copied())
            .map_or(Coding::Identity, |index| available[index])
    }

    #[test]
    fn accept_encoding_decides() {
        use Coding::{Brotli, Gzip, Identity, Zstd};
        for (field, expected) in [
            (None, Identity),
            (Some(""), Identity),
            (Some("gzip"), Gzip),
            (Some("x-gzip"), Gzip),
            (Some("GZIP"), Gzip),
            (Some("gzip, deflate, br, zstd"), Brotli),
            (Some("gzip, zstd"), Zstd),
            (Some("br;q=0.5, gzip;q=0.8"), Gzip),
            (Some("br ; q=0.001"), Brotli),
            (Some("br;q=0, gzip;q=0"), Identity),
            (Some("*"), Brotli),
            (Some("*;q=0"), Identity),
            (Some("br;q=0, *"), Zstd),
            (Some("identity;q=0, gzip"), Gzip),
            (Some("identity;q=0"), Identity),
            (Some("identity, gzip;q=0.5"), Identity),
            (Some("identity;q=0.5, gzip;q=1.0"), Gzip),
            (Some("gzip, identity"), Gzip),
            (Some("gzip;q=1.5"), Identity),
            (Some("gzip;q=0.1234"), Identity),
            (Some("gzip;q="), Identity),
            (Some("gzip;level=9"), Identity),
            (Some("deflate"), Identity),
            (Some(",,;;,gzip"), Gzip),
        ] {
            assert_eq!(chosen(field, &SIBLINGS), expected, "{field:?}");
        }
    }

    #[test]
    fn only_what_exists_is_chosen() {
        assert_eq!(chosen(Some("br, gzip;q=0.1"), &[Coding::Gzip]), Coding::Gzip);
        assert_eq!(chosen(Some("br"), &[]), Coding::Identity);
    }
}
