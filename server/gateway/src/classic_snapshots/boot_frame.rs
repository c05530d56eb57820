//! The request that a script sees while it boots: a neutral one, with what the script is known to read of
//! another one.
//!
//! Called by [`super::script`]. Invariant: nothing else of a client's request reaches a boot, whose memory
//! later requests of other clients begin with.

use super::fact::{Fact, Found, cookie, header, param};
use outboard_ring::request::{FIELD_COUNT, Field, Fixed, RequestParts, RequestView, encode};
use std::collections::BTreeMap;

/// The frame of a GET request for the script of `request`, with these facts of it and the configured variables.
pub(super) fn of(
    request: &RequestView<'_>,
    facts: &[Fact],
    constants: &BTreeMap<String, String>,
) -> Vec<u8> {
    let mut fields = neutral(request);
    let mut fixed = Fixed { server_port: 80, ..Fixed::default() };
    let mut headers: Vec<(&[u8], &[u8])> = Vec::new();
    let constants = constants.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let mut params: Vec<(&[u8], &[u8])> = constants.collect();
    for fact in facts {
        match fact {
            Fact::Field(field) => fields[*field as usize] = request.field(*field),
            Fact::ServerPort => fixed.server_port = request.fixed.server_port,
            Fact::Header(name) => {
                if let Found::One(value) = header(request, name) {
                    headers.push((name, value));
                }
            }
            Fact::Cookie(name) => {
                if let Found::One(pair) = cookie(request, name) {
                    headers.push((b"cookie", pair));
                }
            }
            Fact::Param(name) => {
                params.extend(param(request, name).map(|value| (&name[..], value)))
            }
            Fact::Cookies | Fact::Query | Fact::Body | Fact::Length | Fact::Unrepeatable => {}
        }
    }
    let mut frame = Vec::new();
    let (headers, params) = (headers.into_iter(), params.into_iter());
    encode(RequestParts { fixed, fields, headers, params }, &mut frame);
    frame
}

/// Nothing here is of the machine, of its network or of a client: addresses that are reserved for documentation (RFC
/// 5737) and differ, and a name that does not exist (RFC 2606).
fn neutral<'a>(request: &RequestView<'a>) -> [&'a [u8]; FIELD_COUNT] {
    let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
    let same = [Field::ScriptFilename, Field::ScriptName, Field::DocumentRoot, Field::DocumentUri];
    for field in same {
        fields[field as usize] = request.field(field);
    }
    for (field, value) in [
        (Field::Method, &b"GET"[..]),
        (Field::Uri, request.field(Field::ScriptName)),
        (Field::Protocol, b"HTTP/1.1"),
        (Field::RemoteAddr, b"203.0.113.0"),
        (Field::ServerAddr, b"192.0.2.0"),
        (Field::ServerName, b"boot.invalid"),
        (Field::Scheme, b"http"),
        (Field::RequestId, b"0000000000000000"),
    ] {
        fields[field as usize] = value;
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::super::testing::frame;
    use super::*;

    #[test]
    fn only_what_the_script_reads_is_taken_from_a_request() {
        let headers = [("Host", "a.test"), ("Cookie", "session=secret; lang=de"), ("X-Key", "k")];
        let request = frame(&headers, "token=secret");
        let request = RequestView::decode(&request).unwrap();
        let facts = [Fact::of("_SERVER.HTTP_HOST"), Fact::of("_COOKIE.lang"), Fact::of("_GET")];
        let constants = BTreeMap::from([("APP_ENV".to_owned(), "prod".to_owned())]);
        let boot = of(&request, &facts.concat(), &constants);
        let boot = RequestView::decode(&boot).unwrap();
        assert_eq!(header(&boot, b"host"), Found::One(b"a.test"));
        assert_eq!(header(&boot, b"cookie"), Found::One(b"lang=de"));
        assert_eq!((header(&boot, b"x-key"), boot.field(Field::Query)), (Found::None, &b""[..]));
        assert_eq!(param(&boot, b"APP_ENV"), Some(&b"prod"[..]));
        assert_eq!(boot.field(Field::ScriptName), b"/index.php");
        assert_ne!(boot.field(Field::RemoteAddr), boot.field(Field::ServerAddr));
        assert_eq!(
            (boot.field(Field::Uri), boot.field(Field::ServerName)),
            (&b"/index.php"[..], &b"boot.invalid"[..])
        );
    }
}
