//! A request as the test wants it on the wire.

use crate::Multipart;

/// A request; what is not set is not sent, except `Host`, which the client fills in.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method, sent as it is.
    pub method: String,
    /// The request target, sent as it is.
    pub target: String,
    /// The fields in their order, sent as they are.
    pub headers: Vec<(String, String)>,
    /// The body; a `Content-Length` is added for it when it is not empty.
    pub body: Vec<u8>,
}

impl Request {
    /// Any method.
    pub fn new(method: &str, target: &str) -> Request {
        Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A GET request.
    pub fn get(target: &str) -> Request {
        Request::new("GET", target)
    }

    /// A POST request with a body of this type.
    pub fn post(target: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Request {
        Request::new("POST", target).header("Content-Type", content_type).body(body)
    }

    /// A POST request as a browser sends a form.
    pub fn form(target: &str, fields: &[(&str, &str)]) -> Request {
        let pairs: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{}={}", form_encode(name), form_encode(value)))
            .collect();
        Request::post(target, "application/x-www-form-urlencoded", pairs.join("&"))
    }

    /// A POST request as a browser sends a form with files.
    pub fn upload(target: &str, parts: Multipart) -> Request {
        let (content_type, body) = parts.finish();
        Request::post(target, &content_type, body)
    }

    /// Adds a field.
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = body.into();
        self
    }

    /// Whether a field of this name is set.
    pub fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(have, _)| have.eq_ignore_ascii_case(name))
    }

    /// The bytes for the wire; `authority` becomes `Host` if the request has none.
    pub fn to_bytes(&self, authority: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.has("host") {
            head.push_str(&format!("Host: {authority}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let framed = self.has("content-length") || self.has("transfer-encoding");
        if !self.body.is_empty() && !framed {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// `application/x-www-form-urlencoded`, as the URL standard's serializer writes it.
pub(crate) fn form_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'*' | b'-' | b'.' | b'_' => {
                encoded.push(byte as char);
            }
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
