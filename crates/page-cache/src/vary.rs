//! Vary (RFC 9111 4.1): which stored response of a resource answers a request.
//!
//! Called when a response is stored and on every look-up. A response keeps the names that it
//! varies by and the values that its request had, normalised; another request matches if it has
//! the same. Invariant: two values are taken for one only where RFC 9111 4.1 allows it by the
//! field's own syntax.

use crate::cookies::{self, CookieRules};
use crate::entry::allocated;
use crate::list;
use crate::message::Fields;
use crate::tags;

/// The fields that a response varies by and what its request said in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variant {
    /// In lower case, sorted, each once, joined by commas; empty when nothing varies.
    names: Box<str>,
    /// Their normalised values, in order.
    values: Box<[u8]>,
    /// The [`OVERRIDES`] that the request had; empty for nearly every one.
    overrides: Box<[u8]>,
}

/// The response varies by what is not in the request (`*`): it can never be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariesByAnything;

/// What silent pages are told apart by though they do not say so: what applications look at
/// without a word in Vary.
pub const SILENT_NAMES: [&str; 5] =
    ["accept", "accept-language", "origin", "user-agent", "x-requested-with"];

/// Fields that frameworks take for a part of the URL. Every response is told apart by them, or one
/// client could have a page stored that others get with links to a host of its choice.
pub const OVERRIDES: [&str; 11] = [
    "forwarded",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-forwarded-server",
    "x-host",
    "x-http-method-override",
    "x-original-url",
    "x-rewrite-url",
];

impl Variant {
    /// The variant that `response` is, as an answer to `request`. `silent` adds [`SILENT_NAMES`].
    ///
    /// # Errors
    /// There is a `*` among the names, or what is no name.
    pub fn of(
        request: Fields<'_>,
        response: Fields<'_>,
        silent: bool,
        rules: &CookieRules,
    ) -> Result<Self, VariesByAnything> {
        let mut names: Vec<String> = Vec::new();
        for element in response.all("vary").flat_map(list::elements) {
            // What is no field name (RFC 9110 12.5.5) may mean anything.
            if element == b"*" || !list::is_token(element) {
                return Err(VariesByAnything);
            }
            names.push(String::from_utf8_lossy(element).to_ascii_lowercase());
        }
        if silent {
            names.extend(SILENT_NAMES.map(str::to_owned));
        }
        names.sort_unstable();
        names.dedup();
        let mut values = Vec::new();
        for name in &names {
            push_value(&mut values, request, name, silent, rules);
        }
        let overrides = overrides(request).into();
        Ok(Self { names: names.join(",").into(), values: values.into(), overrides })
    }

    /// Whether a request with these fields gets this variant.
    pub fn answers(&self, request: Fields<'_>, silent: bool, rules: &CookieRules) -> bool {
        if *overrides(request) != *self.overrides {
            return false;
        }
        if self.names.is_empty() {
            return true;
        }
        let mut values = Vec::with_capacity(self.values.len());
        for name in self.names.split(',') {
            push_value(&mut values, request, name, silent, rules);
        }
        *values == *self.values
    }

    /// A number for it that is the same in every process.
    pub fn hash(&self) -> u64 {
        tags::hash(&self.raw().join(&0))
    }

    /// Names, values and overrides, for a record of it.
    pub(crate) fn raw(&self) -> [&[u8]; 3] {
        [self.names.as_bytes(), &self.values, &self.overrides]
    }

    /// From what [`Self::raw`] gave.
    pub(crate) fn from_raw([names, values, overrides]: [&[u8]; 3]) -> Option<Self> {
        let names = std::str::from_utf8(names).ok()?.into();
        Some(Self { names, values: values.into(), overrides: overrides.into() })
    }

    /// What it takes beside its own size, in bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        allocated(self.names.len()) + allocated(self.values.len()) + allocated(self.overrides.len())
    }

    /// The names, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.split(',').filter(|name| !name.is_empty())
    }
}

/// The lines of a request that are [`OVERRIDES`], in order.
fn overrides(request: Fields<'_>) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in request.0 {
        // All but one begin with `x-`, and few other fields do.
        let may_be = matches!(name, [b'x' | b'X', b'-', ..]) || name.len() == "forwarded".len();
        let is = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
        if may_be && let Some(known) = OVERRIDES.iter().find(|known| is(known)) {
            for piece in [known.as_bytes(), b":", value, b"\n"] {
                lines.extend_from_slice(piece);
            }
        }
    }
    lines
}

/// Appends the normalised value of a field, told apart from its absence, and its end.
fn push_value(
    values: &mut Vec<u8>,
    request: Fields<'_>,
    name: &str,
    silent: bool,
    rules: &CookieRules,
) {
    // A field line cannot hold these two bytes, so nothing a client sends can look like them.
    const ABSENT: u8 = b'\r';
    const END: u8 = b'\n';
    if name == "cookie" {
        let kept =
            cookies::pairs(request).filter(|pair| !rules.is_harmless(cookies::name_of(pair)));
        push_sorted(values, kept.map(<[u8]>::to_vec).collect());
    } else {
        match request.joined(name) {
            None => values.push(ABSENT),
            Some(value) => match name {
                "accept-encoding" => push_sorted(values, codings(&value)),
                "user-agent" if silent => values.push(if is_mobile(&value) { b'm' } else { b'd' }),
                "accept" if silent => push_accept_class(values, &value),
                "accept" | "accept-language" | "accept-charset" => push_preferences(values, &value),
                _ => values.extend_from_slice(&value),
            },
        }
    }
    values.push(END);
}

fn push_sorted(values: &mut Vec<u8>, mut members: Vec<Vec<u8>>) {
    members.sort_unstable();
    members.dedup();
    values.extend_from_slice(&members.join(&b','));
}

/// The codings that are accepted at all (RFC 9110 12.5.3), without their weights: a server picks
/// among them by its own taste.
fn codings(value: &[u8]) -> Vec<Vec<u8>> {
    let accepted = list::elements(value).filter(|element| !is_refused(element));
    accepted.map(|element| first_part(element).to_ascii_lowercase()).collect()
}

/// Whether an element has `q=0`.
fn is_refused(element: &[u8]) -> bool {
    list::split(element, b';').skip(1).any(|parameter| {
        let (name, weight) = list::name_and_argument(parameter);
        let is_zero = |weight: &[u8]| {
            weight.first() == Some(&b'0') && weight[1..].iter().all(|byte| b".0".contains(byte))
        };
        name.eq_ignore_ascii_case(b"q") && weight.is_some_and(|weight| is_zero(weight.trim_ascii()))
    })
}

fn first_part(element: &[u8]) -> &[u8] {
    list::split(element, b';').next().unwrap_or_default()
}

/// Elements whose case and white space mean nothing; their order may.
fn push_preferences(values: &mut Vec<u8>, value: &[u8]) {
    for element in list::elements(value) {
        for part in list::split(element, b';') {
            values.extend(
                part.iter().filter(|byte| !byte.is_ascii_whitespace()).map(u8::to_ascii_lowercase),
            );
            values.push(b';');
        }
        values.push(b',');
    }
}

/// Themes for phones look for these words.
fn is_mobile(user_agent: &[u8]) -> bool {
    const WORDS: [&[u8]; 6] =
        [b"Mobile", b"Android", b"Silk/", b"Kindle", b"BlackBerry", b"Opera M"];
    WORDS.iter().any(|word| memchr::memmem::find(user_agent, word).is_some())
}

/// What applications choose by: the first type, and whether newer image formats are welcome.
fn push_accept_class(values: &mut Vec<u8>, value: &[u8]) {
    let first = list::elements(value).next().map(first_part).unwrap_or_default();
    values.extend(first.to_ascii_lowercase());
    for format in [&b"image/webp"[..], b"image/avif"] {
        values.push(if memchr::memmem::find(value, format).is_some() { b'+' } else { b'-' });
    }
}
