//! One kind of request that a client sends, and what its answer has to be.
//!
//! Experiments make them, [`crate::generator`] sends them. Invariant: the same ask is sent to every
//! stack of a comparison.

use std::sync::Arc;

use outboard_load::{Request, Template};

use crate::http::HOST;

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    path: String,
    host: String,
    headers: String,
    method: &'static str,
    body: Option<&'static str>,
    is_filled: bool,
    /// The length that a good answer's body has; `None`: any.
    pub length_bytes: Option<usize>,
    /// The body that a good answer has; `None`: any.
    pub answer: Option<Arc<[u8]>>,
}

impl Ask {
    /// A GET of a path, its query included.
    pub fn get(path: &str) -> Self {
        Self {
            path: path.into(),
            host: HOST.into(),
            headers: String::new(),
            method: "GET",
            body: None,
            is_filled: false,
            length_bytes: None,
            answer: None,
        }
    }

    /// A POST of a form.
    pub fn post(path: &str, form: &'static str) -> Self {
        let ask = Self { method: "POST", body: Some(form), ..Self::get(path) };
        ask.header("Content-Type: application/x-www-form-urlencoded")
    }

    /// A PUT of bytes.
    pub fn put(path: &str, body: &'static str) -> Self {
        Self { method: "PUT", body: Some(body), ..Self::get(path) }
    }

    /// A command of Redis's protocol: its arguments as a path, and the last as a body, if it has one.
    pub fn command(name: &'static str, arguments: &str, last: Option<&'static str>) -> Self {
        Self { method: name, body: last, ..Self::get(arguments) }
    }

    /// With the places of the generator's templates in its path filled, `{key}` for one.
    pub fn filled(self) -> Self {
        Self { is_filled: true, ..self }
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

    /// What is asked for.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The request in the generator's terms, with `?id=N` appended when it is to be numbered.
    pub fn request(&self, is_numbered: bool) -> Request {
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
        let ask = Ask::post("/form", "a=1&b=2").header("Cookie: c=3");
        let text = String::from_utf8(ask.bytes()).expect("ASCII");
        assert!(text.starts_with("POST /form HTTP/1.1\r\n"), "{text}");
        assert!(text.contains("Cookie: c=3\r\nContent-Length: 7\r\n\r\na=1&b=2"), "{text}");
    }
}
