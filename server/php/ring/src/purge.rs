//! A purge of the page cache: the payload of [`Call::Purge`].
//!
//! The host encodes, the gateway decodes. Invariant: a purge that cannot be read in full selects
//! nothing, and is read as it was encoded.
//!
//! ```text
//!  u8 soft │ then for each selector: u8 kind │ u32 length │ text
//! ```
//!
//! [`Call::Purge`]: crate::operation::Call::Purge

use crate::corrupt::Corrupt;

/// The pages of one selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected<'a> {
    /// One URL, or one path with its query on every host.
    Url(&'a [u8]),
    /// All URLs, or all paths, with this prefix.
    Prefix(&'a [u8]),
    /// All pages with this tag.
    Tag(&'a [u8]),
    /// All pages.
    All,
}

const URL: u8 = b'u';
const PREFIX: u8 = b'p';
const TAG: u8 = b't';
const ALL: u8 = b'a';

impl<'a> Selected<'a> {
    /// The selector with this kind, a letter that the shim uses too.
    pub fn of_kind(kind: u8, text: &'a [u8]) -> Option<Self> {
        match kind {
            URL => Some(Self::Url(text)),
            PREFIX => Some(Self::Prefix(text)),
            TAG => Some(Self::Tag(text)),
            ALL => Some(Self::All),
            _ => None,
        }
    }

    /// The URL, prefix or tag; empty for all pages.
    pub fn text(self) -> &'a [u8] {
        self.parts().1
    }

    fn parts(self) -> (u8, &'a [u8]) {
        match self {
            Self::Url(text) => (URL, text),
            Self::Prefix(text) => (PREFIX, text),
            Self::Tag(text) => (TAG, text),
            Self::All => (ALL, b""),
        }
    }
}

/// A purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeCall<'a> {
    /// Whether the pages may be served stale while they are revalidated.
    pub is_soft: bool,
    /// The selectors, whose pages are all purged.
    pub selected: Vec<Selected<'a>>,
}

impl<'a> PurgeCall<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.push(u8::from(self.is_soft));
        for selected in &self.selected {
            let (kind, text) = selected.parts();
            out.push(kind);
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text);
        }
        debug_assert_eq!(PurgeCall::decode(&out[at..]).as_ref(), Ok(self));
    }

    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        const BROKEN: Corrupt = Corrupt { what: "a purge cannot be read" };
        let (&soft, mut rest) = payload.split_first().ok_or(BROKEN)?;
        let mut selected = Vec::new();
        while let Some((&kind, tail)) = rest.split_first() {
            let (length, tail) = tail.split_first_chunk::<4>().ok_or(BROKEN)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (text, tail) = tail.split_at_checked(length).ok_or(BROKEN)?;
            selected.push(Selected::of_kind(kind, text).ok_or(BROKEN)?);
            rest = tail;
        }
        Ok(Self { is_soft: soft != 0, selected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_is_read_whole_or_not_at_all() {
        let selected = vec![
            Selected::Url(b"/a?b"),
            Selected::Prefix(b"/"),
            Selected::Tag(b"t"),
            Selected::All,
        ];
        let call = PurgeCall { is_soft: true, selected };
        let mut bytes = Vec::new();
        call.encode(&mut bytes);
        assert_eq!(PurgeCall::decode(&bytes), Ok(call));
        let whole: Vec<usize> =
            (1..bytes.len()).filter(|&len| PurgeCall::decode(&bytes[..len]).is_ok()).collect();
        // Where a selector ends.
        assert_eq!(whole, [1, 10, 16, 22]);
        assert!(PurgeCall::decode(b"").is_err() && PurgeCall::decode(b"\0x\0\0\0\0").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_purge_that_is_encoded_so_or_corrupt(
            payload in proptest::collection::vec(proptest::prop_oneof![0..4_u8, 97..118_u8], 0..40),
        ) {
            let Ok(call) = PurgeCall::decode(&payload) else { return Ok(()) };
            let mut again = Vec::new();
            call.encode(&mut again);
            assert_eq!(PurgeCall::decode(&again).as_ref(), Ok(&call));
            let bytes: usize = call.selected.iter().map(|selected| selected.text().len() + 5).sum();
            assert!(bytes < payload.len(), "no text is longer than the payload");
        }
    }
}
