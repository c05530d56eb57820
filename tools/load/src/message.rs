//! [`Message`]: a rendered request that is not yet encoded in a protocol.
//!
//! One per step and thread, rendered again and again without allocation once its buffers have
//! grown.

use crate::plan::Request;
use crate::target::Target;
use crate::template::Source;

#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) path: Vec<u8>,
    pub(crate) host: Vec<u8>,
    /// FastCGI: the directory that the path is relative to.
    pub(crate) document_root: String,
    pub(crate) body: Vec<u8>,
    /// In the order of the request's headers; the last is for cookies and is empty without any.
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

    /// Renders the request.
    pub(crate) fn render(
        &mut self,
        request: &Request,
        source: &mut Source<'_>,
        cookies: &[(String, String)],
    ) {
        self.path.clear();
        request.path.render(source, &mut self.path);
        for ((_, out), (name, value)) in self.fields.iter_mut().zip(&request.headers) {
            // Empty fields are omitted, and the host has its own field.
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

    /// The fields to send.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let filled = self.fields.iter().filter(|(_, value)| !value.is_empty());
        filled.map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Whether Content-Length is sent: always for methods that announce a body (RFC 9110 8.6).
    pub(crate) fn has_body(&self) -> bool {
        !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }
}
