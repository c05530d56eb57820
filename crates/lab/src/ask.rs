//! One kind of request that a client sends, and what its answer has to be.
//!
//! Experiments make them, [`crate::client`] sends them. Invariant: the same ask is sent to every
//! stack of a comparison.

use std::sync::Arc;

use crate::http::HOST;

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    path: String,
    host: String,
    headers: String,
    body: Option<&'static str>,
    /// The length that a good answer's body has; `None`: any.
    pub length_bytes: Option<usize>,
    answer: Option<Arc<[u8]>>,
}

impl Ask {
    /// A GET of a path, its query included.
    pub fn get(path: &str) -> Self {
        Self {
            path: path.into(),
            host: HOST.into(),
            headers: String::new(),
            body: None,
            length_bytes: None,
            answer: None,
        }
    }

    /// A POST of a form.
    pub fn post(path: &str, form: &'static str) -> Self {
        let ask = Self { body: Some(form), ..Self::get(path) };
        ask.header("Content-Type: application/x-www-form-urlencoded")
    }

    /// Of another host than that of all stacks.
    pub fn to_host(self, host: &str) -> Self {
        Self { host: host.into(), ..self }
    }

    /// With one more header line.
    pub fn header(mut self, line: &str) -> Self {
        self.headers.push_str(line);
        self.headers.push_str("\r\n");
        self
    }

    /// An answer of any other length counts as failed.
    pub fn expecting(self, length_bytes: usize) -> Self {
        Self { length_bytes: Some(length_bytes), ..self }
    }

    /// An answer with any other body counts as failed.
    pub fn expecting_body(self, body: &[u8]) -> Self {
        Self { answer: Some(body.into()), ..self.expecting(body.len()) }
    }

    /// The bytes that a good answer's body has; `None`: any.
    pub fn body_bytes(&self) -> Option<&[u8]> {
        self.answer.as_deref()
    }

    /// The request as it is sent, with `?id=N` appended when a number is given.
    pub fn bytes(&self, id: Option<u64>) -> Vec<u8> {
        let Self { path, host, headers, .. } = self;
        let id = id.map_or_else(String::new, |id| format!("?id={id}"));
        let rest = format!("{path}{id} HTTP/1.1\r\nHost: {host}\r\n{headers}");
        match self.body {
            None => format!("GET {rest}\r\n"),
            Some(body) => format!("POST {rest}Content-Length: {}\r\n\r\n{body}", body.len()),
        }
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_carries_its_length() {
        let ask = Ask::post("/form", "a=1&b=2").header("Cookie: c=3");
        let text = String::from_utf8(ask.bytes(None)).expect("ASCII");
        assert!(text.starts_with("POST /form HTTP/1.1\r\n"), "{text}");
        assert!(text.contains("Cookie: c=3\r\nContent-Length: 7\r\n\r\na=1&b=2"), "{text}");
    }

    #[test]
    fn a_number_becomes_the_query() {
        assert!(Ask::get("/x").bytes(Some(7)).starts_with(b"GET /x?id=7 HTTP/1.1\r\n"));
    }
}
