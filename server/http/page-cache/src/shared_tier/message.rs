//! A purge as it is published to all gateways.
//!
//! ```text
//!  generation ' ' node ' ' 'h' or 's' ' ' selector
//! ```
//! Invariant: a selector that cannot be decoded selects everything.

use crate::purge::Selector;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// The number of the purge, counted from the first of its epoch.
    pub(crate) generation: u64,
    /// The gateway that purges.
    pub(super) node: String,
    pub(super) is_soft: bool,
    pub(super) selector: Selector,
}

/// All but the generation, which the server adds.
pub(super) fn encoded(node: &str, is_soft: bool, selector: &Selector) -> Vec<u8> {
    let kind = if is_soft { 's' } else { 'h' };
    [format!("{node} {kind} ").as_bytes(), &selector.encoded()].concat()
}

impl Message {
    /// `None` if it has no generation.
    pub(crate) fn decoded(text: &[u8]) -> Option<Self> {
        let mut words = text.splitn(4, |&byte| byte == b' ');
        let generation = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        let node = String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned();
        let is_soft = words.next() == Some(b"s");
        let selector = Selector::decoded(words.next().unwrap_or_default());
        let selector = selector.map_or(Selector::All, |(selector, _)| selector);
        Some(Self { generation, node, is_soft, selector })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_message_equals_the_encoded_one() {
        let selectors = [
            Selector::All,
            Selector::url(b"/a b"),
            Selector::prefix(b"/ "),
            Selector::Tags(vec![32]),
        ];
        for selector in selectors {
            for is_soft in [false, true] {
                let text = [b"7 ", &encoded("n0de", is_soft, &selector)[..]].concat();
                let selector = selector.clone();
                let message = Message { generation: 7, node: "n0de".into(), is_soft, selector };
                assert_eq!(Message::decoded(&text), Some(message));
            }
        }
    }

    #[test]
    fn an_invalid_selector_purges_everything() {
        for text in ["3", "3 x", "3 x h", "3 x h ", "3 x h zzz", "3 x h u\u{1}\0\0\0"] {
            let message = Message::decoded(text.as_bytes()).unwrap();
            assert_eq!((message.generation, message.selector), (3, Selector::All), "{text:?}");
        }
        assert_eq!(Message::decoded(b"x"), None);
    }
}
