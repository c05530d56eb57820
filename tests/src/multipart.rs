//! A `multipart/form-data` body (RFC 7578), well-formed or deliberately not.

/// A body under construction; the boundary is fixed, so that two servers get the same bytes.
#[derive(Clone, Debug, Default)]
pub struct Multipart {
    body: Vec<u8>,
    unfinished: bool,
}

const BOUNDARY: &str = "----outboard-boundary-7d1a4c";

impl Multipart {
    /// No part yet.
    pub fn new() -> Multipart {
        Multipart::default()
    }

    /// Adds a plain field.
    pub fn field(self, name: &str, value: &str) -> Multipart {
        self.part(&[&format!("Content-Disposition: form-data; name=\"{name}\"")], value.as_bytes())
    }

    /// Adds a file.
    pub fn file(
        self,
        name: &str,
        file_name: &str,
        content_type: &str,
        content: &[u8],
    ) -> Multipart {
        let disposition =
            format!("Content-Disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"");
        self.part(&[&disposition, &format!("Content-Type: {content_type}")], content)
    }

    /// Adds a part with these header lines, right or wrong.
    pub fn part(mut self, headers: &[&str], content: &[u8]) -> Multipart {
        self.body.extend_from_slice(format!("--{BOUNDARY}\r\n").as_bytes());
        for header in headers {
            self.body.extend_from_slice(format!("{header}\r\n").as_bytes());
        }
        self.body.extend_from_slice(b"\r\n");
        self.body.extend_from_slice(content);
        self.body.extend_from_slice(b"\r\n");
        self
    }

    /// Leaves the end out, as a client does that stops in the middle of a file.
    pub fn cut_short(mut self) -> Multipart {
        self.unfinished = true;
        self
    }

    /// The content type and the body.
    pub fn finish(mut self) -> (String, Vec<u8>) {
        if self.unfinished {
            self.body.truncate(self.body.len().saturating_sub(2));
        } else {
            self.body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        }
        (format!("multipart/form-data; boundary={BOUNDARY}"), self.body)
    }
}
