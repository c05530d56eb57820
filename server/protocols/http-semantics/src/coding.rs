//! Content codings and the choice among them by Accept-Encoding (RFC 9110 12.5.3). Pure.

use crate::list;

/// A content coding that bodies are compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `br`, RFC 7932.
    Brotli,
    /// `zstd`, RFC 8878.
    Zstd,
    /// `gzip`, RFC 1952.
    Gzip,
}

impl Coding {
    /// All of them, the smallest result first; this order decides between equal weights.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// The name in Accept-Encoding and Content-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The coding of `available` that the client prefers; `None` for the identity coding. A client
    /// without Accept-Encoding gets the identity coding. One that refuses it gets any other that it does not refuse.
    ///
    /// ```
    /// use outboard_http_semantics::Coding;
    ///
    /// assert_eq!(Coding::choose(Some(b"gzip, br"), Coding::ALL), Some(Coding::Brotli));
    /// assert_eq!(Coding::choose(Some(b"br;q=0.1, gzip"), Coding::ALL), Some(Coding::Gzip));
    /// assert_eq!(Coding::choose(None, Coding::ALL), None);
    /// ```
    pub fn choose(
        accept_encoding: Option<&[u8]>,
        available: impl IntoIterator<Item = Self>,
    ) -> Option<Self> {
        let weights = Weights::parse(accept_encoding?);
        let mut best = None;
        let mut best_weight = 0;
        for coding in available {
            let weight = weights.of(coding);
            if weight > best_weight {
                (best, best_weight) = (Some(coding), weight);
            }
        }
        // An unlisted identity coding is acceptable, but anything that is listed is preferred.
        if best_weight < weights.identity.unwrap_or(0) { None } else { best }
    }
}

/// The weights of an Accept-Encoding field in thousandths; `None` for what it does not list.
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
            let slot = match token {
                b"*" => &mut weights.any,
                _ if token.eq_ignore_ascii_case(b"identity") => &mut weights.identity,
                _ if token.eq_ignore_ascii_case(b"br") => &mut weights.brotli,
                _ if token.eq_ignore_ascii_case(b"zstd") => &mut weights.zstd,
                _ if token.eq_ignore_ascii_case(b"gzip") => &mut weights.gzip,
                // RFC 9110 8.4.1.3: a synonym.
                _ if token.eq_ignore_ascii_case(b"x-gzip") => &mut weights.gzip,
                _ => continue,
            };
            // A parameter that is no weight refuses the coding.
            *slot = Some(parts.next().map_or(1000, |part| parse_weight(part).unwrap_or(0)));
        }
        weights
    }

    /// 0 refuses the coding.
    fn of(&self, coding: Coding) -> u16 {
        let listed = match coding {
            Coding::Brotli => self.brotli,
            Coding::Zstd => self.zstd,
            Coding::Gzip => self.gzip,
        };
        listed.or(self.any).unwrap_or(u16::from(self.identity == Some(0)))
    }
}

/// The weight of a parameter such as `q=0.5` in thousandths (RFC 9110 12.4.2).
pub fn parse_weight(parameter: &[u8]) -> Option<u16> {
    let (name, value) = list::name_and_argument(parameter.trim_ascii());
    if !name.eq_ignore_ascii_case(b"q") {
        return None;
    }
    match value?.trim_ascii() {
        b"1" | b"1." | b"1.0" | b"1.00" | b"1.000" => Some(1000),
        b"0" => Some(0),
        [b'0', b'.', digits @ ..] if digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit) => {
            let places = [100, 10, 1].iter().zip(digits);
            Some(places.map(|(place, digit)| place * u16::from(digit - b'0')).sum())
        }
        _ => None,
    }
}

/// Whether compression pays for a media type: text, and formats that consist of text or tables.
pub fn is_compressible(content_type: &[u8]) -> bool {
    const TYPES: [&str; 12] = [
        "application/javascript",
        "application/json",
        "application/rtf",
        "application/sql",
        "application/vnd.ms-fontobject",
        "application/wasm",
        "application/xml",
        "application/yaml",
        "font/otf",
        "font/ttf",
        "image/bmp",
        "image/x-icon",
    ];
    let essence = content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let starts = |text: &[u8]| {
        essence.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
    };
    let ends = |text: &[u8]| {
        let start = essence.len().checked_sub(text.len());
        start.is_some_and(|start| essence[start..].eq_ignore_ascii_case(text))
    };
    starts(b"text/")
        || ends(b"+xml")
        || ends(b"+json")
        || TYPES.iter().any(|known| essence.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_encoding_decides() {
        use Coding::{Brotli, Gzip, Zstd};
        assert_eq!(Coding::choose(None, Coding::ALL), None);
        for (field, expected) in [
            ("", None),
            ("gzip", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("GZIP", Some(Gzip)),
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("gzip, zstd", Some(Zstd)),
            ("br;q=0.5, gzip;q=0.8", Some(Gzip)),
            ("br ; q=0.001", Some(Brotli)),
            ("br;q=0, gzip;q=0", None),
            ("*", Some(Brotli)),
            ("*;q=0", None),
            ("br;q=0, *", Some(Zstd)),
            ("identity;q=0, gzip", Some(Gzip)),
            ("identity;q=0", Some(Brotli)),
            ("identity;q=0, br;q=0", Some(Zstd)),
            ("identity;q=0, *;q=0", None),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip;q=1.0", Some(Gzip)),
            ("gzip, identity", Some(Gzip)),
            ("gzip;q=1.5", None),
            ("gzip;q=0.1234", None),
            ("gzip;q=", None),
            ("gzip;level=9", None),
            ("deflate", None),
            (",,;;,gzip", Some(Gzip)),
            ("GZIP;q=0.5, br;q=0.1", Some(Gzip)),
            ("gzip;q=0.5, identity;q=0.2", Some(Gzip)),
            ("identity;q=0, *;q=0.1", Some(Brotli)),
            ("gzip;q=2", None),
            ("gzip;q=1.000", Some(Gzip)),
        ] {
            assert_eq!(Coding::choose(Some(field.as_bytes()), Coding::ALL), expected, "{field:?}");
        }
    }

    #[test]
    fn only_what_is_available_is_chosen() {
        let chosen = Coding::choose(Some(b"br, gzip;q=0.1"), [Coding::Gzip]);
        assert_eq!(chosen, Some(Coding::Gzip));
        assert_eq!(Coding::choose(Some(b"br"), []), None);
    }

    #[test]
    fn text_compresses_and_pictures_do_not() {
        for text in ["text/html", "Text/CSS; charset=utf-8", "image/svg+XML", "application/json"] {
            assert!(is_compressible(text.as_bytes()), "{text}");
        }
        for packed in ["image/png", "application/zip", "font/woff2", "video/mp4", "text", ""] {
            assert!(!is_compressible(packed.as_bytes()), "{packed}");
        }
    }
}
