//! What a request's cookies say about who asks.
//!
//! Called for every request that has cookies. Invariant: a cookie that no list knows counts as one
//! that may change the page.

use crate::message::Fields;
use crate::pattern::NamePattern;

/// Which cookies mean what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CookieRules {
    /// Somebody is logged in, has a cart or wrote a comment.
    pub login: Vec<NamePattern>,
    /// Only scripts in the browser read it; the page is the same.
    pub harmless: Vec<NamePattern>,
}

/// Who asks, by the cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visitor {
    /// Nobody in particular: no cookies, or harmless ones.
    Anonymous,
    /// Some cookie may change the page.
    Unknown,
    /// A cookie says that the page is personal.
    Known,
}

impl CookieRules {
    /// Who sent these fields.
    pub fn visitor(&self, fields: Fields<'_>) -> Visitor {
        let mut visitor = Visitor::Anonymous;
        for name in names(fields) {
            if self.login.iter().any(|pattern| pattern.matches(name)) {
                return Visitor::Known;
            }
            if !self.is_harmless(name) {
                visitor = Visitor::Unknown;
            }
        }
        visitor
    }

    pub(crate) fn is_harmless(&self, name: &[u8]) -> bool {
        self.harmless.iter().any(|pattern| pattern.matches(name))
    }
}

/// The `name=value` pairs of all Cookie lines (RFC 6265 4.2.1). A comma does not separate cookies.
pub(crate) fn pairs<'a>(fields: Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
    let pairs = fields.all("cookie").flat_map(|value| value.split(|&byte| byte == b';'));
    pairs.map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty())
}

/// The name of a pair.
pub(crate) fn name_of(pair: &[u8]) -> &[u8] {
    pair.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii()
}

fn names<'a>(fields: Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
    pairs(fields).map(name_of)
}
