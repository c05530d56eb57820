//! Fields that a server removes from a head and adds to it, before handlers read them.
//!
//! Called where a gateway vouches for who a client is. Invariant: no field that decides the framing or the
//! host is changed, so that the head keeps its meaning.

use crate::head::Span;
use crate::request::RequestHead;

impl RequestHead {
    /// Removes the fields whose name `is_removed` accepts.
    pub fn remove_fields(&mut self, buf: &[u8], is_removed: impl Fn(&[u8]) -> bool) {
        self.parts.fields.retain(|name| !is_removed(name.of(buf)));
    }

    /// Adds a field, which is inserted into the buffer behind the head of `head_len` bytes. The head's new
    /// length.
    pub fn insert_field(
        &mut self,
        buf: &mut Vec<u8>,
        head_len: usize,
        (name, value): (&[u8], &[u8]),
    ) -> usize {
        buf.splice(head_len..head_len, name.iter().chain(value).copied());
        let (middle, end) = (head_len + name.len(), head_len + name.len() + value.len());
        let (name, value) = (Span::new(head_len, middle), Span::new(middle, end));
        // The limits are for what clients send.
        self.parts.fields.push(name, value, usize::MAX).expect("there is no limit");
        end
    }
}

#[cfg(test)]
mod tests {
    use crate::{BodyFraming, HeadLimits, HeadStatus, RequestHead};

    #[test]
    fn fields_are_replaced_and_the_body_follows() {
        let text = b"POST /a HTTP/1.1\r\nHost: x\r\nRemote-User: evil\r\nContent-Length: 4\r\n\
            REMOTE-user: worse\r\n\r\nbody";
        let (mut head, mut buf) = (RequestHead::new(), text.to_vec());
        let Ok(HeadStatus::Complete { head_len }) = head.parse(&buf, &HeadLimits::default()) else {
            panic!("the head is complete");
        };
        head.remove_fields(&buf, |name| name.eq_ignore_ascii_case(b"remote-user"));
        assert_eq!(head.header(&buf, b"remote-user"), None);
        let head_len = head.insert_field(&mut buf, head_len, (b"Remote-User", b"alice"));
        let head_len = head.insert_field(&mut buf, head_len, (b"Remote-Groups", b""));
        assert_eq!(head.header(&buf, b"remote-user"), Some(&b"alice"[..]));
        assert_eq!(head.header(&buf, b"Remote-Groups"), Some(&b""[..]));
        assert_eq!(head.host(&buf), Some(&b"x"[..]));
        assert_eq!(head.body(), BodyFraming::Length(4));
        assert_eq!((&buf[head_len..], head.target(&buf)), (&b"body"[..], &b"/a"[..]));
    }
}
