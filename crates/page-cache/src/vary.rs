//! Vary (RFC 9111 4.1): which stored response of a resource answers a request.
//!
//! Called when a response is stored and on every look-up. A response keeps the names that it
//! varies by and the values that its request had, normalised; another request matches if it has
//! the same. Invariant: two values are taken for one only where RFC 9111 4.1 allows it by the
//! field's own syntax.

use crate::coding::thousandths;
use crate::cookies::{self, CookieRules};
use crate::entry::allocated;
use crate::known_fields::{self, SILENT_NAMES};
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
    /// The lines that tell every page apart that the request had; empty for nearly every one.
    overrides: Box<[u8]>,
}

/// The response varies by what is not in the request (`*`): it can never be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariesByAnything;

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
        if response.contains("content-encoding") {
            // Not everybody can read it, whether it says so or not.
            names.push("accept-encoding".to_owned());
        }
        names.sort_unstable();
        names.dedup();
        let mut values = Vec::new();
        for name in &names {
            push_value(&mut values, request, name, silent, rules);
        }
        let overrides = overrides(request, silent).into();
        Ok(Self { names: names.join(",").into(), values: values.into(), overrides })
    }

    /// Whether a request with these fields gets this variant.
    pub fn answers(&self, request: Fields<'_>, silent: bool, rules: &CookieRules) -> bool {
        if *overrides(request, silent) != *self.overrides {
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

/// The lines of a request that are [`crate::OVERRIDES`], or for a silent page [`crate::SILENT_MARKS`],
/// in order, and a Host in a spelling of its own.
fn overrides(request: Fields<'_>, silent: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in request.0 {
        let respelled =
            || (name.eq_ignore_ascii_case(b"host") && is_respelled(value)).then_some("host");
        if let Some(known) = known_fields::telling(name, silent).or_else(respelled) {
            for piece in [known.as_bytes(), b":", value, b"\n"] {
                lines.extend_from_slice(piece);
            }
        }
    }
    lines
}

/// Whether a Host is written otherwise than in the key. It is the same resource (RFC 9110 4.2.3), but
/// applications send whoever writes it so to the name as they write it, and nobody else.
fn is_respelled(host: &[u8]) -> bool {
    host.iter().any(u8::is_ascii_uppercase) || host.ends_with(b":80") || host.ends_with(b":443")
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
                "user-agent" if silent => push_device(values, &value, request),
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

/// Elements whose case, white space and spelling of a weight mean nothing; their order may.
fn push_preferences(values: &mut Vec<u8>, value: &[u8]) {
    for element in list::elements(value) {
        for part in list::split(element, b';') {
            match weight(part) {
                // RFC 9110 12.4.2: as good as none.
                Some(1000) => {}
                Some(weight) => values.extend(format!("q={weight};").into_bytes()),
                None => {
                    let meant = part.iter().filter(|byte| !byte.is_ascii_whitespace());
                    values.extend(meant.map(u8::to_ascii_lowercase));
                    values.push(b';');
                }
            }
        }
        values.push(b',');
    }
}

/// The weight that a parameter is, in thousandths.
fn weight(part: &[u8]) -> Option<u16> {
    let (name, weight) = list::name_and_argument(part);
    name.eq_ignore_ascii_case(b"q").then(|| thousandths(weight?)).flatten()
}

/// A phone or not, as its User-Agent has it; and whether its hint says otherwise.
fn push_device(values: &mut Vec<u8>, user_agent: &[u8], request: Fields<'_>) {
    let is_mobile = is_mobile(user_agent);
    values.push(if is_mobile { b'm' } else { b'd' });
    if request.first("sec-ch-ua-mobile").is_some_and(|hint| (hint == b"?1") != is_mobile) {
        values.push(b'!');
    }
}

/// Themes for phones look for these words.
fn is_mobile(user_agent: &[u8]) -> bool {
    const WORDS: [&[u8]; 6] =
        [b"Mobile", b"Android", b"Silk/", b"Kindle", b"BlackBerry", b"Opera M"];
    WORDS.iter().any(|word| memchr::memmem::find(user_agent, word).is_some())
}

/// What applications choose by: the type that is liked best, and what they look for anywhere.
fn push_accept_class(values: &mut Vec<u8>, value: &[u8]) {
    const ANYWHERE: [&[u8]; 4] = [b"image/webp", b"image/avif", b"json", b"turbo-stream"];
    let value = value.to_ascii_lowercase();
    let mut best: (u16, &[u8]) = (0, b"");
    for element in list::elements(&value) {
        let weight = list::split(element, b';').skip(1).find_map(weight).unwrap_or(1000);
        if weight > best.0 {
            best = (weight, first_part(element));
        }
    }
    values.extend_from_slice(best.1);
    for word in ANYWHERE {
        values.push(if memchr::memmem::find(&value, word).is_some() { b'+' } else { b'-' });
    }
}
