//! A response as it came over the wire.

/// How the end of a body is marked (RFC 9112, section 6.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body: HEAD, 1xx, 204, 304.
    None,
    /// `Content-Length`.
    Length,
    /// Chunked; the sizes of the chunks in bytes.
    Chunked(Vec<usize>),
    /// The connection was closed.
    Close,
}

/// A response, its body decoded from its framing and from nothing else.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The words after the code.
    pub reason: String,
    /// The fields in their order, names as they were sent.
    pub headers: Vec<(String, String)>,
    /// The content.
    pub body: Vec<u8>,
    /// How its end is marked.
    pub framing: Framing,
}

impl Response {
    /// Takes a head apart, without the empty line at its end.
    pub(crate) fn parse_head(head: &[u8]) -> Result<Response, String> {
        let text: String = head.iter().map(|&byte| byte as char).collect();
        let mut lines = text.split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let (version, rest) = status_line.split_once(' ').ok_or(status_line)?;
        if !version.starts_with("HTTP/1.") {
            return Err(format!("not an HTTP/1 status line: {status_line:?}"));
        }
        let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
        let status = code.parse().map_err(|_| format!("not a status code: {status_line:?}"))?;
        let mut headers = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) =
                line.split_once(':').ok_or_else(|| format!("not a header field: {line:?}"))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let reason = reason.to_owned();
        Ok(Response { status, reason, headers, body: Vec::new(), framing: Framing::None })
    }

    /// The first value of a field.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(have, _)| have.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Every value of a field.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Asserts the status and hands the response on.
    #[track_caller]
    pub fn expect(self, status: u16) -> Response {
        assert_eq!(self.status, status, "headers {:#?}\n{}", self.headers, self.beginning());
        self
    }

    /// Asserts that the body holds this text and hands the response on.
    #[track_caller]
    pub fn holding(self, text: &str) -> Response {
        assert!(self.text().contains(text), "{text:?} is not in the body:\n{}", self.beginning());
        self
    }

    /// Asserts that the body is exactly this and hands the response on.
    #[track_caller]
    pub fn saying(self, text: &str) -> Response {
        assert_eq!(self.text(), text);
        self
    }

    /// As much of the body as a message can bear.
    fn beginning(&self) -> String {
        self.text().chars().take(3000).collect()
    }
}
