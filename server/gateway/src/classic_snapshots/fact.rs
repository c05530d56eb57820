//! [`Fact`]: one thing of a request that a script may read while it boots.
//!
//! Compared by [`super::snapshot`] for each request, and copied into the request of a boot. Invariant: two
//! requests agree on a fact only if PHP gives a script the same value for it; where that is not known they do
//! not agree.

use outboard_ring::request::{Field, RequestView};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    /// A header, by its name in lower case.
    Header(Box<[u8]>),
    /// A string of each request.
    Field(Field),
    /// `SERVER_PORT`.
    ServerPort,
    /// A variable that the gateway adds.
    Param(Box<[u8]>),
    /// A cookie, by its name as PHP has it.
    Cookie(Box<[u8]>),
    /// All cookies: there must be none.
    Cookies,
    /// The query: there must be none.
    Query,
    /// The body: there must be none.
    Body,
    /// The length of the body: it must not be stated.
    Length,
    /// What is never the same again.
    Unrepeatable,
}

impl Fact {
    /// The facts behind a variable that a boot has read, as the host names it ([`RequestRead`]).
    ///
    /// [`RequestRead`]: outboard_ring::control::RequestRead
    pub(super) fn of(name: &str) -> Vec<Self> {
        match name.split_once('.') {
            Some(("_SERVER", variable)) => Self::of_variable(variable),
            Some(("_COOKIE", cookie)) => vec![Self::Cookie(cookie.as_bytes().into())],
            None if name == "_COOKIE" => vec![Self::Cookies],
            None if name == "_GET" => vec![Self::Query],
            None if name == "_POST" || name == "_FILES" => vec![Self::Body],
            // `request_order` may name cookies.
            None if name == "_REQUEST" => vec![Self::Query, Self::Body, Self::Cookies],
            _ => vec![Self::Unrepeatable],
        }
    }

    /// As `variables.c` sets them.
    fn of_variable(name: &str) -> Vec<Self> {
        if let Some(header) = name.strip_prefix("HTTP_") {
            let header = header.to_ascii_lowercase().replace('_', "-");
            return vec![Self::Header(header.into_bytes().into())];
        }
        let field = |field| vec![Self::Field(field)];
        match name {
            "REQUEST_METHOD" => field(Field::Method),
            "REQUEST_URI" => field(Field::Uri),
            "QUERY_STRING" => field(Field::Query),
            "PATH_INFO" | "PATH_TRANSLATED" | "PHP_SELF" => field(Field::PathInfo),
            "SERVER_PROTOCOL" => field(Field::Protocol),
            "CONTENT_TYPE" => field(Field::ContentType),
            "CONTENT_LENGTH" => vec![Self::Length],
            "REMOTE_ADDR" => field(Field::RemoteAddr),
            "SERVER_ADDR" => field(Field::ServerAddr),
            "SERVER_NAME" => field(Field::ServerName),
            "HTTPS" | "REQUEST_SCHEME" => field(Field::Scheme),
            "SERVER_PORT" => vec![Self::ServerPort],
            "AUTH_TYPE" | "REMOTE_USER" | "PHP_AUTH_USER" | "PHP_AUTH_PW" | "PHP_AUTH_DIGEST" => {
                vec![Self::Header((*b"authorization").into())]
            }
            "argv" | "argc" => vec![Self::Query],
            "REMOTE_PORT" | "REQUEST_ID" => vec![Self::Unrepeatable],
            other => vec![Self::Param(other.as_bytes().into())],
        }
    }

    /// Whether a script that has booted with one of the requests may handle the other.
    pub(super) fn agrees(&self, boot: &RequestView<'_>, request: &RequestView<'_>) -> bool {
        match self {
            Self::Header(name) => header(boot, name).agrees(header(request, name)),
            Self::Field(field) => boot.field(*field) == request.field(*field),
            Self::ServerPort => boot.fixed.server_port == request.fixed.server_port,
            Self::Param(name) => param(boot, name) == param(request, name),
            Self::Cookie(name) => cookie(boot, name).agrees(cookie(request, name)),
            Self::Cookies => matches!(header(request, b"cookie"), Found::None),
            Self::Query => request.field(Field::Query).is_empty(),
            Self::Body => request.fixed.content_length.is_none_or(|bytes| bytes == 0),
            Self::Length => request.fixed.content_length.is_none(),
            Self::Unrepeatable => false,
        }
    }
}

/// Whether the host records a read of a variable with this name that the gateway adds (`is_of_request` in
/// `boot_request_reads.c`). Of any other one it is not known whether a boot has read it.
pub(super) fn is_recorded(name: &[u8]) -> bool {
    [&b"HTTP_"[..], b"SSL_", b"OUTBOARD_"].iter().any(|prefix| name.starts_with(prefix))
}

/// A value of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found<'a> {
    None,
    One(&'a [u8]),
    /// PHP joins them, or takes one.
    Several,
}

impl<'a> Found<'a> {
    fn agrees(self, other: Self) -> bool {
        self == other && self != Self::Several
    }

    fn of(mut values: impl Iterator<Item = &'a [u8]>) -> Self {
        match (values.next(), values.next()) {
            (None, _) => Self::None,
            (Some(one), None) => Self::One(one),
            _ => Self::Several,
        }
    }
}

/// The header with this name, which is in lower case.
pub(super) fn header<'a>(view: &RequestView<'a>, name: &[u8]) -> Found<'a> {
    let named = view.headers().filter(|(other, _)| other.eq_ignore_ascii_case(name));
    Found::of(named.map(|(_, value)| value))
}

/// The variable that the gateway adds last: it replaces earlier ones.
pub(super) fn param<'a>(view: &RequestView<'a>, name: &[u8]) -> Option<&'a [u8]> {
    view.params().filter(|(other, _)| *other == name).last().map(|(_, value)| value)
}

/// The cookie with this name, encoded as the client has sent it.
pub(super) fn cookie<'a>(view: &RequestView<'a>, name: &[u8]) -> Found<'a> {
    let lines = view.headers().filter(|(other, _)| other.eq_ignore_ascii_case(b"cookie"));
    let pairs = lines.flat_map(|(_, line)| line.split(|byte| *byte == b';'));
    let named = pairs.filter_map(|pair| {
        let pair = pair.trim_ascii_start();
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        is_name(&pair[..at], name).then_some(pair)
    });
    Found::of(named)
}

/// Whether PHP may make this entry of `$_COOKIE` of a cookie (`php_register_variable_ex`): spaces and dots
/// become underscores, as does a bracket that is not closed; an array has its name before the bracket.
fn is_name(sent: &[u8], name: &[u8]) -> bool {
    let plain = |byte: &u8| if matches!(byte, b' ' | b'.' | b'[') { b'_' } else { *byte };
    let is =
        |sent: &[u8]| sent.len() == name.len() && sent.iter().map(plain).eq(name.iter().map(plain));
    let before_bracket = sent.iter().position(|byte| *byte == b'[').map(|at| &sent[..at]);
    is(sent) || before_bracket.is_some_and(is)
}

#[cfg(test)]
mod tests {
    use super::super::testing::frame;
    use super::*;

    /// Whether a boot without anything special may handle a request with these headers and query.
    fn agrees(read: &str, headers: &[(&str, &str)], query: &str) -> bool {
        let (boot, request) = (frame(&[("Host", "a.test")], ""), frame(headers, query));
        let boot = RequestView::decode(&boot).unwrap();
        let request = RequestView::decode(&request).unwrap();
        Fact::of(read).iter().all(|fact| fact.agrees(&boot, &request))
    }

    #[test]
    fn a_header_has_to_be_equal() {
        let read = "_SERVER.HTTP_HOST";
        assert!(agrees(read, &[("host", "a.test")], ""));
        assert!(!agrees(read, &[("Host", "b.test")], ""));
        assert!(!agrees(read, &[], ""));
        assert!(!agrees(read, &[("Host", "a.test"), ("Host", "a.test")], ""));
        assert!(agrees("_SERVER.HTTP_X_REAL_IP", &[("Host", "a.test")], ""));
        assert!(!agrees("_SERVER.HTTP_X_REAL_IP", &[("X-Real-IP", "")], ""));
        assert!(!agrees("_SERVER.PHP_AUTH_USER", &[("Authorization", "Basic eDp5")], ""));
    }

    #[test]
    fn a_cookie_is_found_as_php_names_it() {
        let with = |read: &str, cookie: &str| agrees(read, &[("Cookie", cookie)], "");
        assert!(with("_COOKIE.lang", "other=1; languages=2; xlang=3"));
        assert!(!with("_COOKIE.lang", "other=1; lang=de"));
        assert!(!with("_COOKIE.lang", "lang[a]=de") && !with("_COOKIE.lang", "lang"));
        for cookie in ["a.b=1", "a b=1", "a[b=1"] {
            assert!(!with("_COOKIE.a_b", cookie));
        }
        assert!(!with("_COOKIE", "any=1"));
        assert!(agrees("_COOKIE", &[], ""));
    }

    #[test]
    fn queries_bodies_and_what_is_unknown() {
        assert!(agrees("_GET", &[], "") && !agrees("_GET", &[], "a=1"));
        assert!(!agrees("_SERVER.QUERY_STRING", &[], "a=1"));
        assert!(agrees("_POST", &[], "a=1"));
        assert!(!agrees("_REQUEST", &[], "a=1") && !agrees("_REQUEST", &[("Cookie", "a=1")], ""));
        assert!(!agrees("_SERVER", &[], "") && !agrees("_SERVER.REMOTE_PORT", &[], ""));
        assert!(agrees("_SERVER.SSL_CLIENT_S_DN", &[], ""));
        assert!(is_recorded(b"OUTBOARD_PREFETCH_X") && !is_recorded(b"ANOTHER"));
    }
}
