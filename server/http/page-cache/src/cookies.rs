//! Whether a request's cookies identify its visitor.
//!
//! Called for every request with cookies. Invariant: a cookie that is in no list may change the page.

use crate::message::Fields;
use crate::pattern::NamePattern;

/// The meaning of cookies by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CookieRules {
    /// The visitor is logged in, has a cart or wrote a comment.
    pub login: Vec<NamePattern>,
    /// The cookie does not change the page; scripts in the browser read it.
    pub ignored: Vec<NamePattern>,
}

/// The visitor as far as cookies identify one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visitor {
    /// No cookies, or ignored ones.
    Anonymous,
    /// A cookie may change the page.
    Unknown,
    /// A login cookie makes the page personal.
    Known,
}

impl CookieRules {
    /// The visitor who sent these fields.
    pub fn visitor(&self, fields: Fields<'_>) -> Visitor {
        let mut visitor = Visitor::Anonymous;
        for name in names(fields) {
            if self.login.iter().any(|pattern| pattern.matches(name)) {
                return Visitor::Known;
            }
            if !self.is_ignored(name) {
                visitor = Visitor::Unknown;
            }
        }
        visitor
    }

    pub(crate) fn is_ignored(&self, name: &[u8]) -> bool {
        self.ignored.iter().any(|pattern| pattern.matches(name))
    }
}

/// The `name=value` pairs of all Cookie lines (RFC 6265 4.2.1). A comma does not separate cookies.
pub(crate) fn pairs<'a>(fields: Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
    fields.all("cookie").flat_map(pairs_of)
}

/// The pairs of one line.
pub(crate) fn pairs_of(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty())
}

/// The name of a pair.
pub(crate) fn name_of(pair: &[u8]) -> &[u8] {
    pair.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii()
}

fn names<'a>(fields: Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
    pairs(fields).map(name_of)
}
