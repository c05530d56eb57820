//! Which field decides about a response: a targeted one (RFC 9213) or Cache-Control.
//!
//! Called by [`crate::freshness`] and [`crate::storage`] through [`Control::read`]. Invariant: one
//! field decides alone; where a targeted one does, Cache-Control and Expires say nothing here
//! (RFC 9213 2.2).

use crate::directives::{ResponseDirectives, Scope, Seconds};
use crate::message::Fields;
use crate::structured::{self, Item};

/// The targeted fields that count here, the closest first.
pub const TARGETED: [&str; 2] = ["outboard-cache-control", "cdn-cache-control"];

/// What a response says about caching, and where it says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// The directives that count.
    pub directives: ResponseDirectives,
    /// Whether a targeted field said them, so that Expires does not count either.
    pub is_targeted: bool,
}

impl Control {
    /// Reads the field that decides.
    pub fn read(fields: Fields<'_>) -> Self {
        let targeted = TARGETED.iter().find_map(|name| targeted(&fields.joined(name)?));
        match targeted {
            Some(directives) => Self { directives, is_targeted: true },
            None => Self { directives: ResponseDirectives::read(fields), is_targeted: false },
        }
    }
}

/// The directives of a targeted field; `None` when it is empty or malformed and so does not count.
fn targeted(field: &[u8]) -> Option<ResponseDirectives> {
    let members = structured::dictionary(field)?;
    if members.is_empty() {
        return None;
    }
    let mut directives = ResponseDirectives::default();
    for (name, item) in members {
        // `?0` is how a dictionary says that something does not hold.
        if item == Item::Boolean(false) {
            continue;
        }
        directives.add(name, seconds(item), |scope| match item {
            Item::String(names) => scope.widen_names(names),
            _ => scope.widen(None),
        });
    }
    Some(directives)
}

fn seconds(item: Item<'_>) -> Seconds {
    match item {
        Item::Integer(number) if number >= 0 => Seconds::saturating(number.unsigned_abs()),
        _ => Seconds::Unreadable,
    }
}

impl Scope {
    /// Adds the fields that a String names.
    fn widen_names(&mut self, names: &[u8]) {
        let quoted = [b"\"", names, b"\""].concat();
        self.widen(Some(&quoted));
    }
}

impl Seconds {
    fn saturating(number: u64) -> Self {
        let most = u64::from(crate::directives::SECONDS_MAX);
        Self::Number(u32::try_from(number.min(most)).unwrap_or(crate::directives::SECONDS_MAX))
    }
}
