//! Cache-Control (RFC 9111 5.2) as facts.
//!
//! Called for every request and response that may use the cache. Invariant: a malformed or repeated
//! directive is read so that less is stored: an unreadable lifetime is 0, an unreadable list of field
//! names means the whole response.

use crate::message::Fields;
use outboard_http_semantics::list;

/// The largest number of seconds; larger ones are read as this one (RFC 9111 1.2.2).
pub const SECONDS_MAX: u32 = 1 << 31;

/// The directives of a request (RFC 9111 5.2.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `max-age`: the largest accepted age, in seconds.
    pub max_age_s: Option<u32>,
    /// `max-stale`: the largest accepted staleness, in seconds; [`SECONDS_MAX`] for any.
    pub max_stale_s: Option<u32>,
    /// `min-fresh`: the least remaining freshness, in seconds.
    pub min_fresh_s: Option<u32>,
    /// `stale-if-error` (RFC 5861 4).
    pub stale_if_error_s: Option<u32>,
    /// `no-cache`.
    pub no_cache: bool,
    /// `no-store`.
    pub no_store: bool,
    /// `only-if-cached`.
    pub only_if_cached: bool,
}

impl RequestDirectives {
    /// Reads the directives. `Pragma: no-cache` counts without Cache-Control (RFC 9111 5.4).
    pub fn read(fields: Fields<'_>) -> Self {
        let mut directives = Self::default();
        let mut has_cache_control = false;
        for value in fields.all("cache-control") {
            has_cache_control = true;
            for element in list::elements(value) {
                directives.add(element);
            }
        }
        if !has_cache_control {
            let mut pragma = fields.all("pragma").flat_map(list::elements);
            directives.no_cache = pragma.any(|element| element.eq_ignore_ascii_case(b"no-cache"));
        }
        directives
    }

    fn add(&mut self, element: &[u8]) {
        let (name, argument) = list::name_and_argument(element);
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("max-age") {
            self.max_age_s = Some(stricter(self.max_age_s, seconds(argument).unwrap_or(0)));
        } else if is("min-fresh") {
            let wanted = seconds(argument).unwrap_or(0);
            self.min_fresh_s = Some(self.min_fresh_s.unwrap_or(0).max(wanted));
        } else if is("max-stale") {
            let accepted =
                if argument.is_none() { SECONDS_MAX } else { seconds(argument).unwrap_or(0) };
            self.max_stale_s = Some(stricter(self.max_stale_s, accepted));
        } else if is("stale-if-error") {
            let accepted = seconds(argument).unwrap_or(0);
            self.stale_if_error_s = Some(stricter(self.stale_if_error_s, accepted));
        } else if is("no-cache") {
            self.no_cache = true;
        } else if is("no-store") {
            self.no_store = true;
        } else if is("only-if-cached") {
            self.only_if_cached = true;
        }
    }
}

/// The smaller of two numbers of a repeated directive.
fn stricter(present: Option<u32>, other: u32) -> u32 {
    present.map_or(other, |present| present.min(other))
}

/// `1*DIGIT`, as a token or quoted (RFC 9111 1.2.2 and 5.2); at most [`SECONDS_MAX`].
fn seconds(argument: Option<&[u8]>) -> Option<u32> {
    digits(list::argument_text(argument?)?)
}

/// A number of decimal digits only, at most [`SECONDS_MAX`].
pub(crate) fn digits(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = text.iter().fold(0_u64, |number, digit| {
        (number * 10 + u64::from(digit - b'0')).min(u64::from(SECONDS_MAX))
    });
    u32::try_from(number).ok()
}

/// What `no-cache` or `private` applies to (RFC 9111 5.2.2.4 and 5.2.2.7).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    /// The directive is absent.
    #[default]
    Nothing,
    /// Only the named fields, in lower case.
    Fields(Vec<Box<str>>),
    /// The whole response.
    Response,
}

impl Scope {
    /// Whether the directive applies to the whole response.
    pub fn is_response(&self) -> bool {
        *self == Self::Response
    }

    /// Whether the directive names the field `name`.
    pub fn names(&self, name: &[u8]) -> bool {
        match self {
            Self::Fields(names) => {
                names.iter().any(|theirs| name.eq_ignore_ascii_case(theirs.as_bytes()))
            }
            Self::Nothing | Self::Response => false,
        }
    }

    /// Adds the argument of another line.
    pub(crate) fn widen(&mut self, argument: Option<&[u8]>) {
        let fresh = match argument {
            None => Self::Response,
            Some(argument) => Self::of_names(list::argument_text(argument)),
        };
        *self = match (std::mem::take(self), fresh) {
            (Self::Nothing, other) | (other, Self::Nothing) => other,
            (Self::Fields(mut names), Self::Fields(more)) => {
                names.extend(more);
                Self::Fields(names)
            }
            _ => Self::Response,
        };
    }

    fn of_names(text: Option<&[u8]>) -> Self {
        let name = |element: &[u8]| -> Option<Box<str>> {
            list::is_token(element)
                .then(|| String::from_utf8_lossy(element).to_ascii_lowercase().into())
        };
        match list::elements(text.unwrap_or_default()).map(name).collect::<Option<Vec<_>>>() {
            Some(names) if !names.is_empty() => Self::Fields(names),
            _ => Self::Response,
        }
    }
}

/// The directives of a response (RFC 9111 5.2.2, RFC 5861, RFC 8246).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// `max-age`; 0 if it is unreadable or two values differ (RFC 9111 4.2.1).
    pub max_age_s: Option<u32>,
    /// `s-maxage`, likewise.
    pub s_maxage_s: Option<u32>,
    /// `stale-while-revalidate`.
    pub stale_while_revalidate_s: Option<u32>,
    /// `stale-if-error`.
    pub stale_if_error_s: Option<u32>,
    /// `no-cache`.
    pub no_cache: Scope,
    /// `private`.
    pub private: Scope,
    /// `no-store`.
    pub no_store: bool,
    /// `public`.
    pub public: bool,
    /// `must-revalidate`.
    pub must_revalidate: bool,
    /// `proxy-revalidate`.
    pub proxy_revalidate: bool,
    /// `must-understand`.
    pub must_understand: bool,
    /// `no-transform`.
    pub no_transform: bool,
    /// `immutable`.
    pub immutable: bool,
}

impl ResponseDirectives {
    /// Reads all Cache-Control lines.
    pub fn read(fields: Fields<'_>) -> Self {
        let mut directives = Self::default();
        for element in fields.all("cache-control").flat_map(list::elements) {
            let (name, argument) = list::name_and_argument(element);
            let number = Seconds::of(argument.is_some(), seconds(argument));
            directives.add(name, number, |scope| scope.widen(argument));
        }
        directives
    }

    /// Adds one directive; `widen` adds the names of `no-cache` and `private`.
    pub(crate) fn add(&mut self, name: &[u8], number: Seconds, widen: impl FnOnce(&mut Scope)) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("max-age") {
            self.max_age_s = Some(agreed(self.max_age_s, number));
        } else if is("s-maxage") {
            self.s_maxage_s = Some(agreed(self.s_maxage_s, number));
        } else if is("stale-while-revalidate") {
            self.stale_while_revalidate_s = Some(agreed(self.stale_while_revalidate_s, number));
        } else if is("stale-if-error") {
            self.stale_if_error_s = Some(agreed(self.stale_if_error_s, number));
        } else if is("no-cache") {
            widen(&mut self.no_cache);
        } else if is("private") {
            widen(&mut self.private);
        } else if let Some(flag) = self.flag(name) {
            *flag = true;
        }
    }

    fn flag(&mut self, name: &[u8]) -> Option<&mut bool> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        // Each test is one comparison of lengths for most names.
        match name.len() {
            6 if is("public") => Some(&mut self.public),
            8 if is("no-store") => Some(&mut self.no_store),
            9 if is("immutable") => Some(&mut self.immutable),
            12 if is("no-transform") => Some(&mut self.no_transform),
            15 if is("must-revalidate") => Some(&mut self.must_revalidate),
            15 if is("must-understand") => Some(&mut self.must_understand),
            16 if is("proxy-revalidate") => Some(&mut self.proxy_revalidate),
            _ => None,
        }
    }
}

/// The argument of a directive that takes seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seconds {
    /// A valid number.
    Number(u32),
    /// Absent or malformed.
    Unreadable,
}

impl Seconds {
    fn of(present: bool, number: Option<u32>) -> Self {
        match number {
            Some(number) if present => Self::Number(number),
            _ => Self::Unreadable,
        }
    }
}

/// The value of a possibly repeated directive; two different values mean 0.
fn agreed(present: Option<u32>, number: Seconds) -> u32 {
    match (present, number) {
        (None, Seconds::Number(number)) => number,
        (Some(present), Seconds::Number(number)) if present == number => number,
        _ => 0,
    }
}
