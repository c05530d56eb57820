//! [`RequestHead`]: the request line and fields of one request (RFC 9112 3 and 5).
//!
//! Called by a server's connection loop with the bytes received so far; owned by the connection and
//! reused for each request. Invariant: only after `Complete` do the accessors describe one valid
//! request, and they need the same bytes that were parsed.
//!
//! For pipelining, parse `&buf[head_len + body_len..]` and pass that same slice to the accessors.

use crate::authority;
use crate::error::HeadError;
use crate::field;
use crate::framing::{BodyFraming, KnownField};
use crate::head::{self, HeadLimits, HeadStatus, Span, Stage, Step, Version};
use crate::head_reader::{self, Head, HeadParts};
use crate::method::Method;
use crate::scan;
use crate::target::Target;
use std::borrow::Cow;

/// RFC 9112 2.2 requires tolerance of at least one empty line before a request line.
const EMPTY_LINES_MAX: u8 = 4;
/// RFC 9112 3 permits a limit below that of the request line; registered methods have at most 17 bytes.
const METHOD_BYTES_MAX: usize = 128;

/// The head of one request, as spans of the buffer that it was parsed from.
///
/// Accessors panic on a shorter buffer than the parsed one.
///
/// ```
/// use outboard_http1::{HeadError, HeadLimits, HeadStatus, RequestHead};
///
/// let mut head = RequestHead::new();
/// let buf = b"GET /a?b HTTP/1.1\r\nHost: example.com\r\n\r\nnext";
/// let status = head.parse(buf, &HeadLimits::default())?;
/// assert_eq!(status, HeadStatus::Complete { head_len: buf.len() - 4 });
/// assert_eq!(head.path_and_query(buf), (&b"/a"[..], Some(&b"b"[..])));
/// assert_eq!(head.header(buf, b"host"), Some(&b"example.com"[..]));
/// # Ok::<(), HeadError>(())
/// ```
#[derive(Debug)]
pub struct RequestHead {
    pub(crate) parts: HeadParts,
    empty_lines: u8,
    pub(crate) method: Span,
    pub(crate) method_kind: Method,
    pub(crate) target: Target,
    pub(crate) version: Version,
    pub(crate) host: Option<Span>,
    pub(crate) upgrade: Option<Span>,
    pub(crate) expects_continue: bool,
    has_cookie: bool,
    repeats_cookie: bool,
}

impl Default for RequestHead {
    fn default() -> Self {
        Self::new()
    }
}

impl Head for RequestHead {
    fn parts(&mut self) -> &mut HeadParts {
        &mut self.parts
    }

    /// Reads an empty line before the request line, or the request line.
    fn read_start(&mut self, visible: &[u8]) -> Result<Step<()>, HeadError> {
        match visible.get(self.parts.progress.next) {
            None => Ok(Step::NeedMore),
            Some(b'\r' | b'\n') => self.skip_empty_line(visible),
            Some(_) => self.read_request_line(visible),
        }
    }

    fn note(&mut self, field: KnownField, value: Span, buf: &[u8]) -> Result<(), HeadError> {
        match field {
            KnownField::Host if self.host.is_some() => return Err(HeadError::DuplicateHost),
            KnownField::Host => self.host = Some(value),
            KnownField::Upgrade => self.upgrade = self.upgrade.or(Some(value)),
            KnownField::Expect => {
                self.expects_continue |= value.of(buf).eq_ignore_ascii_case(b"100-continue");
            }
            KnownField::Cookie => {
                self.repeats_cookie = self.has_cookie;
                self.has_cookie = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, buf: &[u8]) -> Result<(), HeadError> {
        match self.host {
            None if self.version == Version::Http11 => return Err(HeadError::MissingHost),
            None => {}
            Some(host) if host.is_empty() => self.allow_empty_host()?,
            Some(host) if !authority::is_valid(host.of(buf)) => return Err(HeadError::InvalidHost),
            Some(_) => {}
        }
        self.parts.framing.finish(self.version)
    }

    fn reset(&mut self) {
        RequestHead::reset(self);
    }
}

impl RequestHead {
    /// An empty head, ready to parse.
    pub fn new() -> Self {
        Self {
            parts: HeadParts::default(),
            empty_lines: 0,
            method: Span::default(),
            method_kind: Method::Other,
            target: Target::default(),
            version: Version::Http11,
            host: None,
            upgrade: None,
            expects_continue: false,
            has_cookie: false,
            repeats_cookie: false,
        }
    }

    /// Resets everything except memory. `parse` does so itself after `Complete`.
    pub fn reset(&mut self) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.reset();
        *self = Self { parts, ..Self::new() };
    }

    /// Parses the head at the start of `buf`.
    ///
    /// After `Partial`, call again with the same bytes and more: parsing continues at the first
    /// incomplete line. After `Complete` or an error the next call starts a new head.
    pub fn parse(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<HeadStatus, HeadError> {
        head_reader::parse(self, buf, limits)
    }

    fn skip_empty_line(&mut self, buf: &[u8]) -> Result<Step<()>, HeadError> {
        let Step::Line(next) = field::read_line_end(buf, self.parts.progress.next)? else {
            return Ok(Step::NeedMore);
        };
        if self.empty_lines == EMPTY_LINES_MAX {
            return Err(HeadError::TooManyEmptyLines);
        }
        self.empty_lines += 1;
        self.parts.progress.next = next;
        Ok(Step::Line(()))
    }

    fn read_request_line(&mut self, buf: &[u8]) -> Result<Step<()>, HeadError> {
        let start = self.parts.progress.next;
        let token_end = scan::token_end(&buf[start..]);
        if token_end.unwrap_or(buf.len() - start) > METHOD_BYTES_MAX {
            return Err(HeadError::InvalidMethod);
        }
        let Some(method_len) = token_end else { return Ok(Step::NeedMore) };
        let method_end = start + method_len;
        match buf[method_end] {
            b' ' if method_len > 0 => {}
            b'\r' | b'\n' => return refuse_at_line_end(buf, method_end),
            _ => return Err(HeadError::InvalidMethod),
        }
        let target_start = method_end + 1;
        let Some(target_len) = scan::target_end(&buf[target_start..]) else {
            return Ok(Step::NeedMore);
        };
        let target_end = target_start + target_len;
        match buf[target_end] {
            b' ' if target_len > 0 => {}
            b' ' => return Err(HeadError::MalformedRequestLine),
            b'\r' | b'\n' => return refuse_at_line_end(buf, target_end),
            b'#' => return Err(HeadError::FragmentInTarget),
            _ => return Err(HeadError::InvalidTargetByte),
        }
        let Step::Line((version, next)) = read_version_and_line_end(buf, target_end + 1)? else {
            return Ok(Step::NeedMore);
        };
        self.version = version;
        self.method = Span::new(start, method_end);
        self.method_kind = Method::of(&buf[start..method_end]);
        self.target = Target::read(buf, Span::new(target_start, target_end), self.method_kind)?;
        self.parts.progress.start_fields(next);
        Ok(Step::Line(()))
    }

    /// RFC 9110 7.2 requires an empty Host where the target URI has no authority. An origin-form target
    /// takes its authority from Host alone, and an http URI without one is invalid (RFC 9110
    /// 4.2.1); the other forms ignore Host.
    fn allow_empty_host(&self) -> Result<(), HeadError> {
        let origin_form = self.target.path.is_some() && self.target.authority.is_none();
        if origin_form { Err(HeadError::InvalidHost) } else { Ok(()) }
    }

    /// Whether any byte of a request has arrived, beyond empty lines before it.
    ///
    /// Distinguishes a stalled request (408) from an idle connection. After `Complete`, parse or
    /// [`reset`](Self::reset) first: until then this refers to the last head.
    pub fn has_started(&self, buf: &[u8]) -> bool {
        self.parts.progress.stage != Stage::StartLine || buf.len() > self.parts.progress.next
    }

    /// The method as received.
    pub fn method<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        self.method.of(buf)
    }

    /// The method, if it is a common one.
    pub fn method_kind(&self) -> Method {
        self.method_kind
    }

    /// The request target as received.
    pub fn target<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        self.target.whole.of(buf)
    }

    /// [`path`](Self::path) and [`query`](Self::query) together.
    pub fn path_and_query<'b>(&self, buf: &'b [u8]) -> (&'b [u8], Option<&'b [u8]>) {
        (self.path(buf), self.query(buf))
    }

    /// The path of an origin-form or absolute-form target, still encoded.
    ///
    /// `/` where absolute-form has no path (RFC 9110 4.2.3); `*` for `OPTIONS *`; empty for
    /// CONNECT.
    pub fn path<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        match self.target.path {
            Some(path) if path.is_empty() => b"/",
            Some(path) => path.of(buf),
            None if self.method_kind == Method::Connect => b"",
            None => b"*",
        }
    }

    /// The path and query of an origin-form or absolute-form target; any other target as received.
    pub fn origin_form<'b>(&self, buf: &'b [u8]) -> Cow<'b, [u8]> {
        let Some(path) = self.target.path else {
            return Cow::Borrowed(self.target(buf));
        };
        let form = Span::new(path.start(), self.target.whole.end()).of(buf);
        if path.is_empty() { Cow::Owned([b"/", form].concat()) } else { Cow::Borrowed(form) }
    }

    /// The query, without its `?`, still encoded. `Some(b"")` for a bare `?`.
    pub fn query<'b>(&self, buf: &'b [u8]) -> Option<&'b [u8]> {
        self.target.query.map(|query| query.of(buf))
    }

    /// The protocol version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The host that the request is for, with its port if one is given; valid if present.
    ///
    /// The authority of an absolute-form or authority-form target, else the Host field (RFC 9112
    /// 3.2.2). `None` if HTTP/1.0 omits it or it is empty. See
    /// [`split_host_port`](crate::split_host_port).
    pub fn host<'b>(&self, buf: &'b [u8]) -> Option<&'b [u8]> {
        let span = self.target.authority.or(self.host)?;
        (!span.is_empty()).then(|| span.of(buf))
    }

    /// The authority of an absolute-form or authority-form target, which precedes the Host field
    /// (RFC 9112 3.2.2).
    pub fn target_authority<'b>(&self, buf: &'b [u8]) -> Option<&'b [u8]> {
        self.target.authority.map(|authority| authority.of(buf))
    }

    /// The fields in order, names as received, values trimmed.
    pub fn headers<'b>(&self, buf: &'b [u8]) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
        self.parts.fields.iter(buf)
    }

    /// The number of fields.
    pub fn header_count(&self) -> usize {
        self.parts.fields.len()
    }

    /// The value of the first field called `name`, whatever its case.
    pub fn header<'b>(&self, buf: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
        self.parts.fields.find(buf, name)
    }

    /// The value of the only field called `name`; `None` if there are several, of which none is to be trusted.
    pub fn only_header<'b>(&self, buf: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
        let mut found = self.headers(buf).filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.next().filter(|_| found.next().is_none()).map(|(_, value)| value)
    }

    /// The value of the field called `name`, which is empty, and so valid nowhere, if there are several.
    pub fn header_if_alone<'b>(&self, buf: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
        self.header(buf, name).map(|_| self.only_header(buf, name).unwrap_or_default())
    }

    /// Whether there are several Cookie fields, which RFC 6265 5.4 forbids.
    pub fn repeats_cookie(&self) -> bool {
        self.repeats_cookie
    }

    /// How the body is delimited.
    pub fn body(&self) -> BodyFraming {
        self.parts.framing.body()
    }

    /// Whether the connection persists after this request (RFC 9112 9.3).
    pub fn keep_alive(&self) -> bool {
        self.parts.framing.keep_alive(self.version)
    }

    /// Whether the client waits for `100 Continue` before it sends a body (RFC 9110 10.1.1).
    ///
    /// False for HTTP/1.0 and for a request without a body, where the field is ignored, as another
    /// expectation is: 417 is a MAY, and the field ends at the gateway.
    pub fn expect_continue(&self) -> bool {
        let has_body = !matches!(self.body(), BodyFraming::None | BodyFraming::Length(0));
        self.expects_continue && has_body && self.version != Version::Http10
    }

    /// The protocols that the client offers to switch to (RFC 9110 7.8): the Upgrade field, if
    /// Connection names it and the version is HTTP/1.1.
    pub fn upgrade<'b>(&self, buf: &'b [u8]) -> Option<&'b [u8]> {
        let offered = self.parts.framing.upgrade() && self.version != Version::Http10;
        self.upgrade.filter(|_| offered).map(|upgrade| upgrade.of(buf))
    }
}

/// The error of a request line that ends at `at` with fewer than three words.
#[cold]
fn refuse_at_line_end(buf: &[u8], at: usize) -> Result<Step<()>, HeadError> {
    match field::read_line_end(buf, at)? {
        Step::NeedMore => Ok(Step::NeedMore),
        Step::Line(_) => Err(HeadError::MalformedRequestLine),
    }
}

/// Reads `HTTP/1.x CRLF` at `at`; returns the version and the start of the next line.
fn read_version_and_line_end(buf: &[u8], at: usize) -> Result<Step<(Version, usize)>, HeadError> {
    if buf[at..].starts_with(b"HTTP/1.1\r\n") {
        return Ok(Step::Line((Version::Http11, at + 10)));
    }
    read_rare_version_and_line_end(buf, at)
}

#[cold]
fn read_rare_version_and_line_end(
    buf: &[u8],
    at: usize,
) -> Result<Step<(Version, usize)>, HeadError> {
    let Step::Line((version, end)) = head::read_version(buf, at)? else {
        return Ok(Step::NeedMore);
    };
    match buf.get(end) {
        None => return Ok(Step::NeedMore),
        Some(b'\r' | b'\n') => {}
        Some(_) => return Err(HeadError::MalformedVersion),
    }
    match field::read_line_end(buf, end)? {
        Step::NeedMore => Ok(Step::NeedMore),
        Step::Line(next) => Ok(Step::Line((version, next))),
    }
}
