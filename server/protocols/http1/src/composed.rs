//! Heads of requests that came in another form than HTTP/1.1: by HTTP/2 or HTTP/3.
//!
//! Called by the front ends of those protocols with what `outboard-http-semantics` has checked field by
//! field: Host is the authority, and there is one Cookie. Invariant: a composed head has one meaning: one
//! host, one framing; handlers need not know where it came from.

use crate::authority;
use crate::error::HeadError;
use crate::framing::KnownField;
use crate::head::{HeadLimits, Span, Stage, Version};
use crate::method::Method;
use crate::request::RequestHead;
use crate::target::Target;

/// The parts of a request that HTTP/1.1 has in its request line and in Host.
#[derive(Debug, Clone, Copy)]
pub struct ControlData<'a> {
    /// HTTP/2 or HTTP/3.
    pub version: Version,
    /// `:method`.
    pub method: &'a [u8],
    /// `:authority`, or the Host field that stands for it; empty if both are absent.
    pub authority: &'a [u8],
    /// `:path`; for CONNECT it is the authority.
    pub path: &'a [u8],
    /// `:protocol` of an extended CONNECT (RFC 8441 4), which is presented as the request of an
    /// upgrade by HTTP/1.1: a GET with that Upgrade field.
    pub protocol: Option<&'a [u8]>,
    /// Whether the stream has ended with the head.
    pub has_ended: bool,
}

impl RequestHead {
    /// Composes a head in `buf`, which is empty, and returns its length there. Accessors take the same
    /// buffer.
    ///
    /// # Errors
    /// The request is malformed or exceeds a limit; the head is empty then.
    pub fn compose<'a>(
        &mut self,
        buf: &mut Vec<u8>,
        control: ControlData<'_>,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        limits: &HeadLimits,
    ) -> Result<usize, HeadError> {
        self.reset();
        let composed = self.compose_parts(buf, control, fields, limits);
        if composed.is_err() {
            self.reset();
        }
        composed.map(|()| buf.len())
    }

    fn compose_parts<'a>(
        &mut self,
        buf: &mut Vec<u8>,
        control: ControlData<'_>,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        limits: &HeadLimits,
    ) -> Result<(), HeadError> {
        self.version = control.version;
        self.compose_target(buf, control, limits)?;
        let fields_start = buf.len();
        if !control.authority.is_empty() {
            self.add_host(buf, control.authority, limits)?;
        }
        for (name, value) in fields {
            match name {
                b"host" => return Err(HeadError::DuplicateHost),
                _ => self.add_field(buf, name, value, limits)?,
            }
            if buf.len() - fields_start > limits.header_bytes {
                return Err(HeadError::HeadersTooLong);
            }
        }
        // What follows the head of an extended CONNECT is the tunnel, not a body.
        self.parts.framing.note_stream(control.has_ended || control.protocol.is_some());
        self.check_host(buf)?;
        self.parts.progress.stage = Stage::Complete;
        Ok(())
    }

    fn compose_target(
        &mut self,
        buf: &mut Vec<u8>,
        control: ControlData<'_>,
        limits: &HeadLimits,
    ) -> Result<(), HeadError> {
        let method: &[u8] = if control.protocol.is_some() { b"GET" } else { control.method };
        if method.len() + control.path.len() > limits.request_line_bytes {
            return Err(HeadError::RequestLineTooLong);
        }
        self.method = append(buf, method);
        self.method_kind = Method::of(method);
        let path = append(buf, control.path);
        self.target = Target::read(buf, path, self.method_kind)?;
        if let Some(protocol) = control.protocol {
            self.upgrade = Some(append(buf, protocol));
            self.parts.framing.note_upgrade();
        }
        Ok(())
    }

    fn add_field(
        &mut self,
        buf: &mut Vec<u8>,
        name: &[u8],
        value: &[u8],
        limits: &HeadLimits,
    ) -> Result<(), HeadError> {
        let (name_span, value_span) = (append(buf, name), append(buf, value));
        self.parts.fields.push(name_span, value_span, limits.header_count)?;
        match KnownField::of(name) {
            Some(KnownField::ContentLength) => self.parts.framing.note_content_length(value),
            Some(KnownField::Expect) => {
                self.expects_continue |= value.eq_ignore_ascii_case(b"100-continue");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_host(
        &mut self,
        buf: &mut Vec<u8>,
        authority: &[u8],
        limits: &HeadLimits,
    ) -> Result<(), HeadError> {
        let (name, value) = (append(buf, b"host"), append(buf, authority));
        self.parts.fields.push(name, value, limits.header_count)?;
        self.host = Some(value);
        Ok(())
    }

    /// A request that is not for the server as a whole has a host.
    fn check_host(&self, buf: &[u8]) -> Result<(), HeadError> {
        match self.host.map(|host| host.of(buf)) {
            None => Err(HeadError::MissingHost),
            Some(host) if !authority::is_valid(host) => Err(HeadError::InvalidHost),
            Some(_) => Ok(()),
        }
    }
}

fn append(buf: &mut Vec<u8>, bytes: &[u8]) -> Span {
    let start = buf.len();
    buf.extend_from_slice(bytes);
    Span::new(start, buf.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::BodyFraming;

    const LIMITS: HeadLimits =
        HeadLimits { request_line_bytes: 100, header_bytes: 200, header_count: 5 };

    fn control<'a>(authority: &'a str, path: &'a str) -> ControlData<'a> {
        ControlData {
            version: Version::Http2,
            method: b"GET",
            authority: authority.as_bytes(),
            path: path.as_bytes(),
            protocol: None,
            has_ended: true,
        }
    }

    fn compose(
        control: ControlData<'_>,
        fields: &[(&str, &str)],
    ) -> Result<(RequestHead, Vec<u8>), HeadError> {
        let (mut head, mut buf) = (RequestHead::new(), Vec::new());
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let head_len = head.compose(&mut buf, control, fields, &LIMITS)?;
        assert_eq!(head_len, buf.len());
        Ok((head, buf))
    }

    #[test]
    fn a_composed_head_reads_like_a_parsed_one() {
        let fields = [("accept", "*/*"), ("content-length", "3"), ("expect", "100-continue")];
        let control =
            ControlData { method: b"POST", has_ended: false, ..control("a.test:8443", "/a/b?c=d") };
        let (head, buf) = compose(control, &fields).unwrap();
        assert_eq!((head.method(&buf), head.method_kind()), (&b"POST"[..], Method::Post));
        assert_eq!(head.path_and_query(&buf), (&b"/a/b"[..], Some(&b"c=d"[..])));
        assert_eq!(head.target(&buf), b"/a/b?c=d");
        assert_eq!(head.host(&buf), Some(&b"a.test:8443"[..]));
        assert_eq!(head.header(&buf, b"Accept"), Some(&b"*/*"[..]));
        assert_eq!(head.body(), BodyFraming::Length(3));
        assert_eq!(head.header_count(), 4);
        assert_eq!(head.header(&buf, b"Expect"), Some(&b"100-continue"[..]));
        assert!(head.keep_alive() && head.expect_continue() && head.upgrade(&buf).is_none());
    }

    #[test]
    fn a_request_has_one_host() {
        for (authority, expected) in [
            ("a.test", Ok(&b"a.test"[..])),
            ("a.test:8443", Ok(b"a.test:8443")),
            ("[::1]", Ok(b"[::1]")),
            ("", Err(HeadError::MissingHost)),
            ("a test", Err(HeadError::InvalidHost)),
        ] {
            let composed = compose(control(authority, "/"), &[]);
            let found = composed.as_ref().map(|(head, buf)| head.host(buf).unwrap());
            assert_eq!(found.map_err(|error| *error), expected, "{authority:?}");
        }
        let twice = compose(control("a.test", "/"), &[("host", "a.test")]);
        assert_eq!(twice.map(drop), Err(HeadError::DuplicateHost));
    }

    #[test]
    fn a_body_without_a_length_ends_with_the_stream() {
        let body = |has_ended, fields: &[(&str, &str)]| {
            let control = ControlData { has_ended, ..control("a.test", "/") };
            compose(control, fields).map(|(head, _)| head.body())
        };
        assert_eq!(body(true, &[]), Ok(BodyFraming::None));
        assert_eq!(body(false, &[]), Ok(BodyFraming::Stream));
        assert_eq!(body(false, &[("content-length", "2")]), Ok(BodyFraming::Length(2)));
        let twice = [("content-length", "2"), ("content-length", "2")];
        assert_eq!(body(false, &twice), Err(HeadError::DuplicateContentLength));
    }

    #[test]
    fn an_extended_connect_is_the_request_of_an_upgrade() {
        let control = ControlData {
            method: b"CONNECT",
            protocol: Some(b"websocket"),
            has_ended: false,
            ..control("a.test", "/chat")
        };
        let (head, buf) = compose(control, &[]).unwrap();
        assert_eq!((head.method(&buf), head.path(&buf)), (&b"GET"[..], &b"/chat"[..]));
        assert_eq!(head.upgrade(&buf), Some(&b"websocket"[..]));
    }

    #[test]
    fn limits_hold_for_composed_heads_too() {
        let error = |path: &str, fields: &[(&str, &str)]| {
            compose(control("a.test", path), fields).map(|_| ()).unwrap_err()
        };
        let long = "a".repeat(200);
        assert_eq!(error(&format!("/{long}"), &[]), HeadError::RequestLineTooLong);
        assert_eq!(error("/", &[("a", &long)]), HeadError::HeadersTooLong);
        assert_eq!(error("/", &[("cookie", &long)]), HeadError::HeadersTooLong);
        assert_eq!(error("/", &[("a", "b"); 5]), HeadError::TooManyHeaders);
        assert_eq!(error("a", &[]), HeadError::InvalidTarget);
        assert_eq!(error("*", &[]), HeadError::AsteriskFormNotAllowed);
    }
}
