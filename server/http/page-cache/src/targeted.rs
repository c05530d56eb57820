//! Which field decides about a response: a targeted one (RFC 9213) or Cache-Control.
//!
//! Called through [`Control::read`]. Invariant: one field decides alone; a targeted one makes
//! Cache-Control and Expires irrelevant (RFC 9213 2.2).

use crate::directives::{ResponseDirectives, SECONDS_MAX, Seconds};
use crate::message::Fields;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The targeted fields that apply here, the most specific first.
pub const TARGETED: [&str; 2] = ["outboard-cache-control", "cdn-cache-control"];

/// The cache directives of a response and their source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// The directives that apply.
    pub directives: ResponseDirectives,
    /// Whether they are from a targeted field, so that Expires does not apply either.
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

/// The directives of a targeted field; `None` if it is empty or malformed and so does not apply.
fn targeted(field: &[u8]) -> Option<ResponseDirectives> {
    let members: Dictionary = Parser::new(field).parse().ok()?;
    if members.is_empty() {
        return None;
    }
    let mut directives = ResponseDirectives::default();
    for (name, member) in &members {
        // Parameters are ignored (RFC 9213 2.1).
        let value = match member {
            ListEntry::Item(item) => Some(&item.bare_item),
            ListEntry::InnerList(_) => None,
        };
        // `?0` says that a directive does not apply.
        if matches!(value, Some(BareItem::Boolean(false))) {
            continue;
        }
        directives.add(name.as_str().as_bytes(), seconds(value), |scope| match value {
            Some(BareItem::String(names)) => {
                scope.widen(Some(format!("\"{}\"", names.as_str()).as_bytes()));
            }
            _ => scope.widen(None),
        });
    }
    Some(directives)
}

fn seconds(value: Option<&BareItem>) -> Seconds {
    let number = match value {
        Some(BareItem::Integer(number)) => u64::try_from(i64::from(*number)).ok(),
        _ => None,
    };
    let capped = |number: u64| u32::try_from(number).unwrap_or(SECONDS_MAX).min(SECONDS_MAX);
    number.map_or(Seconds::Unreadable, |number| Seconds::Number(capped(number)))
}
