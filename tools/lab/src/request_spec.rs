//! One kind of request that a client sends, with the expected response.
//!
//! Created by experiments, sent by [`crate::generator`]. Invariant: every stack of a comparison
//! gets the same request.

use std::sync::Arc;

use outboard_load::{Request, Template};

/// The Host of every request, so that applications return the same bytes on every port.
pub const HOST: &str = "bench.test";

/// A request.
#[derive(Debug, Clone)]
pub struct RequestSpec {
    path: String,
    host: String,
    headers: String,
    method: &'static str,
    body: Option<&'static str>,
    is_filled: bool,
    /// The length of a good response's body; `None` for any.
    pub length_bytes: Option<usize>,
    /// The body of a good response; `None` for any.
    pub response: Option<Arc<[u8]>>,
}

impl RequestSpec {
    /// A GET of a path with its query.
    pub fn get(path: &str) -> Self {
        Self {
            path: path.into(),
            host: HOST.into(),
            headers: String::new(),
            method: "GET",
            body: None,
            is_filled: false,
            length_bytes: None,
            response: None,
        }
    }

    /// A POST of a form.
    pub fn post(path: &str, form: &'static str) -> Self {
        let request = Self { method: "POST", body: Some(form), ..Self::get(path) };
        request.header("Content-Type: application/x-www-form-urlencoded")
    }

    /// A PUT of bytes.
    pub fn put(path: &str, body: &'static str) -> Self {
        Self { method: "PUT", body: Some(body), ..Self::get(path) }
    }

    /// A Redis command: its arguments as a path, and the last one as a body, if any.
    pub fn command(name: &'static str, arguments: &str, last: Option<&'static str>) -> Self {
        Self { method: name, body: last, ..Self::get(arguments) }
    }

    /// With the placeholders of its path filled, such as `{key}`.
    pub fn filled(self) -> Self {
        Self { is_filled: true, ..self }
    }

    /// For another host than the common one.
    pub fn to_host(self, host: &str) -> Self {
        Self { host: host.into(), ..self }
    }

    /// With another header line.
    pub fn header(mut self, line: &str) -> Self {
        self.headers.push_str(line);
        self.headers.push_str("\r\n");
        self
    }

    /// A response of any other length counts as failed.
    pub fn expecting(self, length_bytes: usize) -> Self {
        Self { length_bytes: Some(length_bytes), ..self }
    }

    /// A response with any other body counts as failed.
    pub fn expecting_body(self, body: &[u8]) -> Self {
        Self { response: Some(body.into()), ..self.expecting(body.len()) }
    }

    /// The requested path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The request for the generator, with `?id=N` appended if it is numbered.
    pub fn render(&self, is_numbered: bool) -> Request {
        let mut path = match self.is_filled {
            true => Template::parse(&self.path).expect("the lab's own templates are closed"),
            false => Template::literal(self.path.as_str()),
        };
        if is_numbered {
            path.append(Template::parse("?id={seq}").expect("it has one place, closed"));
        }
        let fields = self.headers.lines().filter_map(|line| line.split_once(": "));
        let host = ("Host", self.host.as_str());
        let fields = [host].into_iter().chain(fields);
        Request {
            method: self.method.into(),
            headers: fields.map(|(name, value)| (name.into(), Template::literal(value))).collect(),
            body: Template::literal(self.body.unwrap_or_default()),
            path,
        }
    }

    /// The request as it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let Self { method, path, host, headers, .. } = self;
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}");
        match self.body {
            None => format!("{head}\r\n"),
            Some(body) => format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()),
        }
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_carries_its_length() {
        let request = RequestSpec::post("/form", "a=1&b=2").header("Cookie: c=3");
        let text = String::from_utf8(request.bytes()).expect("ASCII");
        assert!(text.starts_with("POST /form HTTP/1.1\r\n"), "{text}");
        assert!(text.contains("Cookie: c=3\r\nContent-Length: 7\r\n\r\na=1&b=2"), "{text}");
    }
}
