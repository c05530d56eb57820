//! Vary (RFC 9111 4.1): which stored response of a resource matches a request.
//!
//! Called when a response is stored and on every lookup. A variant holds the names that the response
//! varies by and the normalised values of its request; a request with equal values matches.
//! Invariant: two values are equal only where RFC 9111 4.1 allows it by the field's own syntax.

use crate::allocated::allocated;
use crate::cookies::{self, CookieRules};
use crate::key::stable_hash;
use crate::known_fields::{self, IMPLICIT_VARY};
use crate::message::Fields;
use outboard_http_semantics::{list, parse_weight};
use smallvec::SmallVec;
use std::fmt;
use std::io::Write;

/// Normalised values; those of ordinary requests are not on the heap.
type Values = SmallVec<[u8; 512]>;

/// The fields that a response varies by, with the values of its request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variant {
    /// In lower case, sorted, each once, joined by commas; empty when nothing varies.
    names: Box<str>,
    /// Their normalised values, in order.
    values: Box<[u8]>,
    /// The request's lines that every response varies by; empty for nearly every request.
    overrides: Box<[u8]>,
}

/// The response varies by more than the request (`*`), so it never matches one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariesByAnything;

impl fmt::Display for VariesByAnything {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the response varies by more than the request")
    }
}

impl std::error::Error for VariesByAnything {}

impl Variant {
    /// The variant of a response to `request`. `implicit` adds [`IMPLICIT_VARY`].
    ///
    /// # Errors
    /// Vary contains `*` or an invalid name.
    pub fn of(
        request: Fields<'_>,
        response: Fields<'_>,
        implicit: bool,
        rules: &CookieRules,
    ) -> Result<Self, VariesByAnything> {
        let mut names: Vec<String> = Vec::new();
        for element in response.all("vary").flat_map(list::elements) {
            // An invalid field name (RFC 9110 12.5.5) may mean anything.
            if element == b"*" || !list::is_token(element) {
                return Err(VariesByAnything);
            }
            names.push(String::from_utf8_lossy(element).to_ascii_lowercase());
        }
        if implicit {
            names.extend(IMPLICIT_VARY.map(str::to_owned));
        }
        if response.contains("content-encoding") {
            // Some clients cannot decode it, whether the response says so or not.
            names.push("accept-encoding".to_owned());
        }
        names.sort_unstable();
        names.dedup();
        let mut values = Values::new();
        for name in &names {
            push_value(&mut values, request, name, implicit, rules);
        }
        let overrides = overrides(request, implicit).into();
        Ok(Self { names: names.join(",").into(), values: values[..].into(), overrides })
    }

    /// Whether a request with these fields matches this variant.
    pub fn matches(&self, request: Fields<'_>, implicit: bool, rules: &CookieRules) -> bool {
        if *overrides(request, implicit) != *self.overrides {
            return false;
        }
        if self.names.is_empty() {
            return true;
        }
        let mut values = Values::new();
        for name in self.names.split(',') {
            push_value(&mut values, request, name, implicit, rules);
        }
        *values == *self.values
    }

    /// A hash that is equal in every process.
    pub fn hash(&self) -> u64 {
        stable_hash(&self.raw().join(&0))
    }

    /// Names, values and overrides, for a record.
    pub(crate) fn raw(&self) -> [&[u8]; 3] {
        [self.names.as_bytes(), &self.values, &self.overrides]
    }

    /// The inverse of [`Self::raw`].
    pub(crate) fn from_raw([names, values, overrides]: [&[u8]; 3]) -> Option<Self> {
        let names = std::str::from_utf8(names).ok()?.into();
        Some(Self { names, values: values.into(), overrides: overrides.into() })
    }

    /// The memory in addition to its own size, in bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        allocated(self.names.len()) + allocated(self.values.len()) + allocated(self.overrides.len())
    }

    /// The names, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.split(',').filter(|name| !name.is_empty())
    }
}

/// The request's lines that are [`crate::OVERRIDES`], or for an implicit page
/// [`crate::RARE_IMPLICIT_VARY`], in order, and a Host in an unusual spelling.
fn overrides(request: Fields<'_>, implicit: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in request.0 {
        let respelled =
            || (name.eq_ignore_ascii_case(b"host") && is_respelled(value)).then_some("host");
        if let Some(known) = known_fields::override_name(name, implicit).or_else(respelled) {
            for piece in [known.as_bytes(), b":", value, b"\n"] {
                lines.extend_from_slice(piece);
            }
        }
    }
    lines
}

/// Whether a Host differs from its spelling in the key. The resource is the same (RFC 9110 4.2.3), but
/// applications put the received spelling into links and redirects.
fn is_respelled(host: &[u8]) -> bool {
    host.iter().any(u8::is_ascii_uppercase) || host.ends_with(b":80") || host.ends_with(b":443")
}

/// Appends the normalised value of a field, or a mark of its absence, and an end.
fn push_value(
    values: &mut Values,
    request: Fields<'_>,
    name: &str,
    implicit: bool,
    rules: &CookieRules,
) {
    // A field value cannot contain these two bytes, so no client can forge them.
    const ABSENT: u8 = b'\r';
    const END: u8 = b'\n';
    if name == "cookie" {
        let relevant =
            cookies::pairs(request).filter(|pair| !rules.is_ignored(cookies::name_of(pair)));
        push_sorted(values, relevant.collect());
    } else {
        match request.joined(name) {
            None => values.push(ABSENT),
            Some(value) => match name {
                "accept-encoding" => push_codings(values, &value),
                "user-agent" if implicit => push_device(values, &value, request),
                "accept" if implicit => push_accept_class(values, &value),
                "accept" | "accept-language" | "accept-charset" => push_preferences(values, &value),
                _ => values.extend_from_slice(&value),
            },
        }
    }
    values.push(END);
}

fn push_sorted(values: &mut Values, mut members: SmallVec<[&[u8]; 32]>) {
    members.sort_unstable();
    members.dedup();
    for (at, member) in members.into_iter().enumerate() {
        if at > 0 {
            values.push(b',');
        }
        values.extend_from_slice(member);
    }
}

/// The accepted codings (RFC 9110 12.5.3) without their weights: a server chooses among them by its
/// own preference.
fn push_codings(values: &mut Values, value: &[u8]) {
    let value = lower_case(value);
    let accepted = list::elements(&value).filter(|element| !is_refused(element));
    push_sorted(values, accepted.map(first_part).collect());
}

fn lower_case(value: &[u8]) -> SmallVec<[u8; 256]> {
    value.iter().map(u8::to_ascii_lowercase).collect()
}

/// Whether an element has `q=0`.
fn is_refused(element: &[u8]) -> bool {
    list::split(element, b';').skip(1).any(|parameter| parse_weight(parameter) == Some(0))
}

fn first_part(element: &[u8]) -> &[u8] {
    list::split(element, b';').next().unwrap_or_default()
}

/// Elements whose case, white space and spelling of a weight are insignificant; their order may matter.
fn push_preferences(values: &mut Values, value: &[u8]) {
    for element in list::elements(value) {
        for part in list::split(element, b';') {
            match parse_weight(part) {
                // RFC 9110 12.4.2: the default.
                Some(1000) => {}
                // Writing to memory does not fail.
                Some(weight) => drop(write!(values, "q={weight};")),
                None => {
                    let significant = part.iter().filter(|byte| !byte.is_ascii_whitespace());
                    values.extend(significant.map(u8::to_ascii_lowercase));
                    values.push(b';');
                }
            }
        }
        values.push(b',');
    }
}

/// Whether User-Agent names a phone, and whether the client hint contradicts it.
fn push_device(values: &mut Values, user_agent: &[u8], request: Fields<'_>) {
    let is_mobile = is_mobile(user_agent);
    values.push(if is_mobile { b'm' } else { b'd' });
    if request.first("sec-ch-ua-mobile").is_some_and(|hint| (hint == b"?1") != is_mobile) {
        values.push(b'!');
    }
}

/// The words that mobile themes look for.
fn is_mobile(user_agent: &[u8]) -> bool {
    const WORDS: [&[u8]; 6] =
        [b"Mobile", b"Android", b"Silk/", b"Kindle", b"BlackBerry", b"Opera M"];
    WORDS.iter().any(|word| memchr::memmem::find(user_agent, word).is_some())
}

/// The properties of Accept that applications choose by: the preferred type, and types they look for
/// anywhere in the list.
fn push_accept_class(values: &mut Values, value: &[u8]) {
    const ANYWHERE: [&[u8]; 4] = [b"image/webp", b"image/avif", b"json", b"turbo-stream"];
    let value = lower_case(value);
    let mut best: (u16, &[u8]) = (0, b"");
    for element in list::elements(&value) {
        let weight = list::split(element, b';').skip(1).find_map(parse_weight).unwrap_or(1000);
        if weight > best.0 {
            best = (weight, first_part(element));
        }
    }
    values.extend_from_slice(best.1);
    for word in ANYWHERE {
        values.push(if memchr::memmem::find(&value, word).is_some() { b'+' } else { b'-' });
    }
}
