//! A span of a script: the payload of [`Call::Span`]. No completion follows.
//!
//! The host encodes, the gateway decodes. Invariant: every text lies within the payload.
//!
//! ```text
//!  u64 start µs │ u64 end µs │ u32 id │ u32 parent │ u8 failed │ (u32 length │ text)*: name, error, then key and value of each attribute
//! ```
//!
//! [`Call::Span`]: crate::operation::Call::Span

use crate::corrupt::Corrupt;

const HEAD_BYTES: usize = 25;
/// The largest payload; further attributes are left out.
const MAX_BYTES: usize = 8 << 10;
/// A longer text is cut.
const MAX_TEXT_BYTES: usize = 1 << 10;

const TRUNCATED: Corrupt = Corrupt { what: "a span is shorter than its lengths say" };

/// A span that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanCall<'a> {
    /// In microseconds since the epoch.
    pub start_us: u64,
    /// The same of its end.
    pub end_us: u64,
    /// Its number among the spans of the worker; none is 0.
    pub id: u32,
    /// The number of the span that it is part of; 0: the script.
    pub parent: u32,
    /// Whether it ended with an exception.
    pub has_failed: bool,
    texts: &'a [u8],
}

impl<'a> SpanCall<'a> {
    /// A span with these texts: name, error, and keys and values; those that have room are written to `buffer`.
    pub fn new<'t>(
        (start_us, end_us): (u64, u64),
        (id, parent): (u32, u32),
        has_failed: bool,
        texts: impl IntoIterator<Item = &'t [u8]>,
        buffer: &'a mut Vec<u8>,
    ) -> Self {
        buffer.clear();
        let mut texts = texts.into_iter();
        while let Some(first) = texts.next() {
            let pair = [first, texts.next().unwrap_or_default()];
            let pair = pair.map(|text| &text[..text.len().min(MAX_TEXT_BYTES)]);
            if buffer.len() + pair[0].len() + pair[1].len() + 8 > MAX_BYTES - HEAD_BYTES {
                break;
            }
            for text in pair {
                buffer.extend_from_slice(&(text.len() as u32).to_le_bytes());
                buffer.extend_from_slice(text);
            }
        }
        Self { start_us, end_us, id, parent, has_failed, texts: buffer }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start_us.to_le_bytes());
        out.extend_from_slice(&self.end_us.to_le_bytes());
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&self.parent.to_le_bytes());
        out.push(u8::from(self.has_failed));
        out.extend_from_slice(self.texts);
    }

    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let (head, texts) = payload.split_first_chunk::<HEAD_BYTES>().ok_or(TRUNCATED)?;
        let (start, rest) = head.split_first_chunk().expect("the head has 25 bytes");
        let (end, rest) = rest.split_first_chunk().expect("of which 17 are left");
        let (id, rest) = rest.split_first_chunk().expect("of which 9 are left");
        let (parent, rest) = rest.split_first_chunk().expect("of which 5 are left");
        let mut unread = texts;
        while !unread.is_empty() {
            take_text(&mut unread).ok_or(TRUNCATED)?;
        }
        Ok(Self {
            start_us: u64::from_le_bytes(*start),
            end_us: u64::from_le_bytes(*end),
            id: u32::from_le_bytes(*id),
            parent: u32::from_le_bytes(*parent),
            has_failed: rest[0] != 0,
            texts,
        })
    }

    /// Name, error, and keys and values.
    pub fn texts(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut unread = self.texts;
        std::iter::from_fn(move || {
            let text = take_text(&mut unread);
            debug_assert!(text.is_some() || unread.is_empty(), "decoding has checked all texts");
            text
        })
    }
}

fn take_text<'a>(unread: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = unread.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *unread = rest;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_comes_back_as_far_as_it_has_room() {
        let (mut buffer, long) = (Vec::new(), vec![b'x'; 3_000]);
        let texts = [&b"name"[..], b"", b"key", b"sv"].into_iter();
        let texts = texts.chain(std::iter::repeat_n(&long[..], 40));
        let call = SpanCall::new((1, 2), (3, 4), true, texts, &mut buffer);
        let mut payload = Vec::new();
        call.encode(&mut payload);
        assert!(payload.len() <= MAX_BYTES);
        let decoded = SpanCall::decode(&payload).unwrap();
        assert_eq!((decoded.start_us, decoded.end_us), (1, 2));
        assert_eq!((decoded.id, decoded.parent, decoded.has_failed), (3, 4, true));
        let texts: Vec<&[u8]> = decoded.texts().collect();
        assert_eq!(&texts[..4], [&b"name"[..], b"", b"key", b"sv"]);
        assert!(
            texts.len() > 4 && texts.len().is_multiple_of(2) && texts[4].len() == MAX_TEXT_BYTES
        );
        assert!(SpanCall::decode(&payload[..payload.len() - 1]).is_err());
        assert!(SpanCall::decode(&payload[..16]).is_err());
    }

    #[test]
    fn a_text_without_its_value_and_a_span_without_texts_come_back() {
        for (texts, expected) in [(vec![], vec![]), (vec![&b"name"[..]], vec![&b"name"[..], b""])] {
            let (mut buffer, mut payload) = (b"of another span".to_vec(), Vec::new());
            SpanCall::new((0, u64::MAX), (1, 0), false, texts, &mut buffer).encode(&mut payload);
            let decoded = SpanCall::decode(&payload).unwrap();
            assert_eq!(decoded.texts().collect::<Vec<_>>(), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_texts_within_the_payload_or_corrupt(
            head: [u8; HEAD_BYTES],
            texts in proptest::collection::vec(0..6_u8, 0..60),
        ) {
            let payload = [&head[..], &texts].concat();
            let Ok(call) = SpanCall::decode(&payload) else { return Ok(()) };
            assert_eq!(call.texts().map(|text| text.len() + 4).sum::<usize>(), texts.len());
        }
    }
}
