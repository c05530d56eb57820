//! [`Message`]: a request with its places filled, before it has the form of a protocol.
//!
//! One per step and thread, filled again and again without allocating once its parts have grown.

use crate::plan::Request;
use crate::target::Target;
use crate::template::Source;

#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) path: Vec<u8>,
    pub(crate) host: Vec<u8>,
    /// FastCGI: the folder that the path is below.
    pub(crate) document_root: String,
    pub(crate) body: Vec<u8>,
    /// In the order of the request's headers; the last is for cookies, and empty without.
    fields: Vec<(String, Vec<u8>)>,
}

impl Message {
    pub(crate) fn new(request: &Request, target: &Target) -> Self {
        let names = request.headers.iter().map(|(name, _)| name.clone());
        let names = names.chain(["Cookie".to_owned()]);
        Self {
            method: request.method.clone(),
            host: target.host.clone().into_bytes(),
            document_root: target.document_root.clone(),
            fields: names.map(|name| (name, Vec::new())).collect(),
            ..Self::default()
        }
    }

    /// Fills it for one sending.
    pub(crate) fn render(
        &mut self,
        request: &Request,
        source: &mut Source<'_>,
        cookies: &[(String, String)],
    ) {
        self.path.clear();
        request.path.render(source, &mut self.path);
        for ((_, out), (name, value)) in self.fields.iter_mut().zip(&request.headers) {
            // An empty field is none, and the host has its own place.
            let out = if name.eq_ignore_ascii_case("host") { &mut self.host } else { out };
            out.clear();
            value.render(source, out);
        }
        if let Some((_, cookie)) = self.fields.last_mut() {
            cookie.clear();
            for (name, value) in cookies {
                let separator = if cookie.is_empty() { "" } else { "; " };
                for part in [separator, name, "=", value] {
                    cookie.extend_from_slice(part.as_bytes());
                }
            }
        }
        self.body.clear();
        request.body.render(source, &mut self.body);
    }

    /// The fields to send, names as given.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let filled = self.fields.iter().filter(|(_, value)| !value.is_empty());
        filled.map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Whether a length is told: always where the method announces a body (RFC 9110 8.6).
    pub(crate) fn has_body(&self) -> bool {
        !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }
}
