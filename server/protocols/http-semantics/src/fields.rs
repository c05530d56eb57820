//! [`Fields`]: the fields of a head or of trailers, in one buffer that is used again.
//!
//! Owned by [`crate::RequestHead`] and written by [`crate::HeadReader`]; HTTP/2 keeps the trailers of a
//! response in one. Invariant: nothing is allocated once the memory suffices.

/// A range of the buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn of(self, bytes: &[u8]) -> &[u8] {
        let start = self.start as usize;
        bytes.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// Fields in the order of the message.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    spans: Vec<(Span, Span)>,
}

impl Fields {
    /// Names and values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.spans.iter().map(|(name, value)| (name.of(&self.bytes), value.of(&self.bytes)))
    }

    /// The value of the first field of that name, in lower case.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Removes everything except the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// The bytes of memory.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<(Span, Span)>()
    }

    /// Adds bytes that are not a field.
    #[inline]
    pub(crate) fn store(&mut self, bytes: &[u8]) -> Span {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        Span { start, len: bytes.len() as u32 }
    }

    pub(crate) fn stored(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    /// Adds a field, its name in lower case.
    #[inline]
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.reserve(name.len() + value.len());
        let name = self.store(name);
        let value = self.store(value);
        self.spans.push((name, value));
    }

    /// Replaces the fields of one name by the first, with all their values.
    pub(crate) fn join(&mut self, wanted: &[u8], separator: &[u8]) {
        let start = self.bytes.len() as u32;
        let mut first = None;
        for at in 0..self.spans.len() {
            let (name, value) = self.spans[at];
            if name.of(&self.bytes) != wanted {
                continue;
            }
            if first.is_some() {
                self.bytes.extend_from_slice(separator);
            }
            first.get_or_insert(at);
            let start = value.start as usize;
            self.bytes.extend_from_within(start..start + value.len as usize);
        }
        let Some(first) = first else { return };
        self.spans[first].1 = Span { start, len: self.bytes.len() as u32 - start };
        let (bytes, mut at) = (&self.bytes, 0);
        self.spans.retain(|(name, _)| {
            at += 1;
            at - 1 <= first || name.of(bytes) != wanted
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_one_name_are_joined_at_the_first() {
        let mut fields = Fields::default();
        for (name, value) in [("a", "1"), ("cookie", "x=1"), ("b", ""), ("cookie", "y=2")] {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields.join(b"cookie", b"; ");
        let joined: Vec<_> = fields.iter().collect();
        assert_eq!(joined, [(&b"a"[..], &b"1"[..]), (b"cookie", b"x=1; y=2"), (b"b", b"")]);
        fields.join(b"none", b"; ");
        assert_eq!(fields.len(), 3);
    }
}
