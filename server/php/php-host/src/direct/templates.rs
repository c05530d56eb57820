//! [`Templates`]: requests that the gateway has routed to the script, by host and path.
//!
//! Owned by [`super::Direct`]. Another request for the same host and path has the same route: only its method, query,
//! fields and body differ, by which no route of such an app is decided. Invariants: a template is used for
//! [`TEMPLATE_MS`] and then the gateway decides again, since a file may have come; they are few and short; nothing is
//! left in one of what only its client has sent.

use outboard_http1::{BodyFraming, RequestHead};
use outboard_ring::direct::{Greeting, TEMPLATE_MS};
use outboard_ring::request::{Field, Fixed, RequestParts, RequestView, encode, request_id_text};
use std::collections::HashMap;

/// Templates at a time, and the longest.
const MAX_TEMPLATES: usize = 256;
const MAX_TEMPLATE_BYTES: usize = 8 << 10;
/// What another request has of its own.
const OWN_FIELDS: [Field; 8] = [
    Field::Method,
    Field::Uri,
    Field::Query,
    Field::Protocol,
    Field::ContentType,
    Field::RemoteAddr,
    Field::ServerAddr,
    Field::RequestId,
];

#[derive(Debug, Default)]
pub(crate) struct Templates {
    /// By host and path as received, with a space between them.
    by_target: HashMap<Vec<u8>, Template>,
    key: Vec<u8>,
}

#[derive(Debug)]
struct Template {
    frame: Vec<u8>,
    until_us: u64,
}

fn path(target: &[u8]) -> &[u8] {
    target.split(|&byte| byte == b'?').next().unwrap_or_default()
}

impl Templates {
    /// Learns from a request of the gateway, which has come now.
    pub(crate) fn learn(&mut self, frame: &[u8], now_us: u64) {
        let Ok(view) = RequestView::decode(frame) else { return };
        let is_host = |name: &[u8]| name.eq_ignore_ascii_case(b"host");
        let mut hosts = view.headers().filter(|(name, _)| is_host(name));
        let (Some((_, host)), None) = (hosts.next(), hosts.next()) else { return };
        let key = [host, b" ", path(view.field(Field::Uri))].concat();
        if self.by_target.len() >= MAX_TEMPLATES && !self.by_target.contains_key(&key) {
            self.by_target.clear();
        }
        let mut fields = view.fields();
        OWN_FIELDS.into_iter().for_each(|own| fields[own as usize] = b"");
        let (fixed, headers, params) = (Fixed::default(), std::iter::empty(), view.params());
        let mut frame = Vec::new();
        encode(RequestParts { fixed, fields, headers, params }, &mut frame);
        if frame.len() + key.len() <= MAX_TEMPLATE_BYTES {
            let until_us = now_us + TEMPLATE_MS * 1_000;
            self.by_target.insert(key, Template { frame, until_us });
        }
    }

    /// Encodes the frame of a request of a direct connection, if there is a template.
    pub(super) fn apply(
        &mut self,
        (head, input): (&RequestHead, &[u8]),
        client: &Greeting,
        (received_us, now_us): (u64, u64),
        frame: &mut Vec<u8>,
    ) -> bool {
        let Some(host) = head.host(input) else { return false };
        self.key.clear();
        self.key.extend_from_slice(host);
        self.key.push(b' ');
        self.key.extend_from_slice(head.path(input));
        let Some(template) = self.by_target.get(&self.key) else { return false };
        if template.until_us < now_us {
            self.by_target.remove(&self.key);
            return false;
        }
        let Ok(view) = RequestView::decode(&template.frame) else { return false };
        let request_id = request_id_text(client.request_id);
        let mut fields = view.fields();
        let own: [&[u8]; OWN_FIELDS.len()] = [
            head.method(input),
            head.target(input),
            head.query(input).unwrap_or_default(),
            b"HTTP/1.1",
            head.header(input, b"content-type").unwrap_or_default(),
            client.remote_addr.as_bytes(),
            client.server_addr.as_bytes(),
            &request_id,
        ];
        for (field, value) in OWN_FIELDS.into_iter().zip(own) {
            fields[field as usize] = value;
        }
        let content_length = match head.body() {
            BodyFraming::Length(bytes) => Some(bytes),
            _ => None,
        };
        let fixed = Fixed {
            content_length,
            received_us,
            remote_port: client.remote_port,
            server_port: client.server_port,
            ..Fixed::default()
        };
        frame.clear();
        let (headers, params) = (head.headers(input), view.params());
        encode(RequestParts { fixed, fields, headers, params }, frame);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_http1::{HeadLimits, HeadStatus};
    use outboard_ring::request::FIELD_COUNT;

    const SECOND_US: u64 = 1_000_000;

    fn frame(uri: &[u8], param: &[u8]) -> Vec<u8> {
        let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
        fields[Field::Uri as usize] = uri;
        fields[Field::ScriptName as usize] = b"/index.php";
        fields[Field::Query as usize] = b"secret=1";
        let headers: [(&[u8], &[u8]); 2] = [(b"hOST", b"a.test"), (b"Cookie", b"secret=2")];
        let (headers, params) = (headers.into_iter(), [(&b"P"[..], param)].into_iter());
        let mut frame = Vec::new();
        encode(RequestParts { fixed: Fixed::default(), fields, headers, params }, &mut frame);
        frame
    }

    /// The frame of a request at this time.
    fn applied(templates: &mut Templates, line: &str, host: &str, now_us: u64) -> Option<Vec<u8>> {
        let input = format!("{line} HTTP/1.1\r\nHost: {host}\r\nX: y\r\n\r\n").into_bytes();
        let mut head = RequestHead::new();
        let parsed = head.parse(&input, &HeadLimits::default());
        assert!(matches!(parsed, Ok(HeadStatus::Complete { .. })));
        let client = Greeting {
            slot: 0,
            generation: 0,
            requests: 1,
            request_id: 0xab,
            request_line_bytes: 0,
            head_bytes: 0,
            header_count: 0,
            remote_addr: "192.0.2.1".to_owned(),
            remote_port: 7,
            server_addr: String::new(),
            server_port: 80,
            compress_min_bytes: 0,
            body_bytes: 0,
        };
        let mut frame = Vec::new();
        templates.apply((&head, &input), &client, (5, now_us), &mut frame).then_some(frame)
    }

    #[test]
    fn a_request_has_the_route_of_its_template_and_nothing_else_of_it() {
        let mut templates = Templates::default();
        templates.learn(&frame(b"/a?secret=1", b"v"), 0);
        let frame = applied(&mut templates, "GET /a?b", "a.test", SECOND_US).unwrap();
        assert_eq!(memchr(&frame, b"secret"), None);
        let view = RequestView::decode(&frame).unwrap();
        let field = |field| view.field(field);
        assert_eq!((field(Field::Method), field(Field::Uri)), (&b"GET"[..], &b"/a?b"[..]));
        assert_eq!(
            (field(Field::Query), field(Field::ScriptName)),
            (&b"b"[..], &b"/index.php"[..])
        );
        assert_eq!(field(Field::RequestId), b"00000000000000ab");
        assert_eq!(
            view.headers().collect::<Vec<_>>(),
            [(&b"Host"[..], &b"a.test"[..]), (b"X", b"y")]
        );
        assert_eq!(view.params().collect::<Vec<_>>(), [(&b"P"[..], &b"v"[..])]);
        let kept = templates
            .by_target
            .values()
            .all(|template| memchr(&template.frame, b"secret").is_none());
        assert!(kept, "a cookie of another client is in memory");
    }

    fn memchr(bytes: &[u8], text: &[u8]) -> Option<usize> {
        bytes.windows(text.len()).position(|window| window == text)
    }

    #[test]
    fn another_host_path_or_second_is_the_gateways() {
        let mut templates = Templates::default();
        templates.learn(&frame(b"/a", b""), 0);
        for (line, host) in [
            ("GET /b", "a.test"),
            ("GET /A", "a.test"),
            ("GET /a", "b.test"),
            ("GET /a/", "a.test"),
        ] {
            assert_eq!(applied(&mut templates, line, host, 0), None, "{line} {host}");
        }
        assert!(applied(&mut templates, "POST /a", "a.test", SECOND_US).is_some());
        assert!(applied(&mut templates, "GET /a", "a.test", SECOND_US + 1).is_none());
        assert!(templates.by_target.is_empty(), "it was too old");
    }

    #[test]
    fn templates_are_few_and_short() {
        let mut templates = Templates::default();
        for number in 0..1_000 {
            templates.learn(&frame(format!("/{number}").as_bytes(), b""), 0);
        }
        assert!(templates.by_target.len() <= MAX_TEMPLATES);
        templates.by_target.clear();
        templates.learn(&frame(b"/a", &[b'x'; MAX_TEMPLATE_BYTES]), 0);
        assert!(templates.by_target.is_empty());
    }
}
