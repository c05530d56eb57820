//! A purge as all gateways hear it.
//!
//! ```text
//!  generation ' ' node ' ' 'h' or 's' ' ' selector
//! ```
//! Invariant: what cannot be read is a purge of everything.

use outboard_page_cache::Selector;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// Which purge it is, counted from the first.
    pub(crate) generation: u64,
    /// Who purges.
    pub(super) node: String,
    pub(super) is_soft: bool,
    pub(super) selector: Selector,
}

/// All but the generation, which the server puts before it.
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
    fn a_message_is_read_as_it_was_written() {
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
    fn what_cannot_be_read_purges_everything() {
        for text in ["3", "3 x", "3 x h", "3 x h ", "3 x h zzz", "3 x h u\u{1}\0\0\0"] {
            let message = Message::decoded(text.as_bytes()).unwrap();
            assert_eq!((message.generation, message.selector), (3, Selector::All), "{text:?}");
        }
        assert_eq!(Message::decoded(b"x"), None);
    }
}
