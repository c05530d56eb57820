//! URLs with placeholders for parts of the request.
//!
//! Values from a client are percent-encoded when they are inserted, so that they can add neither
//! path segments nor parameters; scheme and host cannot contain placeholders.

use super::kind::{Fault, Scalar, Written};

/// A URL such as `http://127.0.0.1:9000/search?q={query:q}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlTemplate {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The path, below the app's prefix.
    Path,
    /// The query string as one value.
    Query,
    /// The query string, unchanged, as the whole query string of the URL.
    WholeQuery,
    /// One query parameter, decoded as in PHP's `$_GET`.
    Value(String),
}

impl UrlTemplate {
    /// The URL for a request with this decoded path, `/` first and without the app's prefix, and
    /// this query.
    pub fn expand(&self, path: &[u8], query: &[u8]) -> String {
        let mut url = String::with_capacity(self.text.len() + 32);
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => url.push_str(text),
                Piece::Path => encode(path, b"/", &mut url),
                Piece::Query => encode(query, b"", &mut url),
                Piece::WholeQuery => encode(query, b"%&=+;:@!$'()*,/?[]", &mut url),
                Piece::Value(name) => {
                    encode(&value_of(query, name).unwrap_or_default(), b"", &mut url);
                }
            }
        }
        url
    }

    /// The template as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Scalar for UrlTemplate {
    const NAME: &'static str = "URL";
    const EXPECTED: &'static str = "a URL such as \"http://127.0.0.1:9000/search?q={query:q}\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        let rest = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"))
            .ok_or_else(|| Fault::new("the URL starts with neither http:// nor https://"))?;
        // A path starts with a slash.
        let plain = rest.replace("{path}", "/");
        let authority = plain.split(['/', '?']).next().unwrap_or_default();
        if authority.is_empty() {
            return Err(Self::unexpected());
        }
        if authority.contains(['{', '}']) {
            return Err(Fault::new("the host cannot depend on the request"));
        }
        if authority.contains('@') {
            return Err(Fault::new("a URL cannot contain credentials")
                .hint("send them in a header: headers =  { Authorization = \"Basic …\" }"));
        }
        if text.contains('#') || text.chars().any(|c| c.is_control() || c == ' ') {
            return Err(Fault::new("a URL cannot contain `#`, spaces or control characters"));
        }
        Ok(UrlTemplate { text: text.to_owned(), pieces: pieces(text)? })
    }

    fn write(&self) -> String {
        self.text.clone()
    }
}

fn pieces(mut rest: &str) -> Result<Vec<Piece>, Fault> {
    let mut pieces = Vec::new();
    while let Some(at) = rest.find(['{', '}']) {
        let (text, placeholder) = rest.split_at(at);
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        let Some((name, after)) =
            placeholder.strip_prefix('{').and_then(|inner| inner.split_once('}'))
        else {
            return Err(Fault::new("unbalanced brace"));
        };
        pieces.push(match name.split_once(':') {
            None if name == "path" => Piece::Path,
            None if name == "query" && text.ends_with('?') && after.is_empty() => Piece::WholeQuery,
            None if name == "query" => Piece::Query,
            Some(("query", value)) if !value.is_empty() => Piece::Value(value.to_owned()),
            _ => {
                return Err(Fault::new(format!("unknown placeholder `{{{name}}}`"))
                    .hint("known placeholders: {path}, {query} and {query:NAME}"));
            }
        });
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

/// Appends `bytes`; all but unreserved characters (RFC 3986 2.3) and `literal` are percent-encoded.
fn encode(bytes: &[u8], literal: &[u8], url: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || literal.contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push('%');
            url.push(char::from(HEX[usize::from(byte >> 4)]));
            url.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// The last value with this name, decoded.
fn value_of(query: &[u8], name: &str) -> Option<Vec<u8>> {
    let named = query_pairs(query).filter(|(key, _)| key == name.as_bytes());
    named.last().map(|(_, value)| value)
}

/// The names and values of a query, decoded.
pub fn query_pairs(query: &[u8]) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    query.split(|&byte| byte == b'&').map(|pair| {
        let at = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
        let (name, value) = pair.split_at(at);
        (decode(name), decode(value.strip_prefix(b"=").unwrap_or(value)))
    })
}

/// `application/x-www-form-urlencoded`.
fn decode(text: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match (byte, digit(text.get(at)), digit(text.get(at + 1))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 2;
            }
            (b'+', ..) => out.push(b' '),
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(template: &str, path: &str, query: &str) -> String {
        let template = UrlTemplate::read(Written::Text(template)).unwrap();
        template.expand(path.as_bytes(), query.as_bytes())
    }

    #[test]
    fn placeholders_are_filled_in_encoded() {
        let query = "q=a%26b+c&x=1&q=last%20one";
        assert_eq!(expand("http://a/s?q={query:q}&y", "/", query), "http://a/s?q=last%20one&y");
        assert_eq!(
            expand("http://a/s?q={query}", "/", "a=1&b=%20"),
            "http://a/s?q=a%3D1%26b%3D%2520"
        );
        assert_eq!(expand("http://a/s?{query}", "/", "a=1&b=%20"), "http://a/s?a=1&b=%20");
        assert_eq!(
            expand("http://a{path}?{query}", "/b/\u{e4} ?&", ""),
            "http://a/b/%C3%A4%20%3F%26?"
        );
        assert_eq!(expand("http://a/{query:none}", "/", query), "http://a/");
    }

    #[test]
    fn client_input_cannot_leave_its_place() {
        for hostile in ["x%26y=2", "x%23", "x%2F..%2F", "x%0d%0aX:%20y", "x%00"] {
            let url = expand("http://a/s?q={query:q}", "/", &format!("q={hostile}"));
            let value = url.strip_prefix("http://a/s?q=").unwrap();
            assert!(
                value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)),
                "{url}"
            );
        }
    }

    #[test]
    fn invalid_templates_are_rejected() {
        for text in [
            "ftp://a/",
            "a/b",
            "http://",
            "http://{query:host}/",
            "http://user:secret@a/",
            "http://a/{nothing}",
            "http://a/{query:}",
            "http://a/{query",
            "http://a/}",
            "http://a/ b",
            "http://a/#b",
        ] {
            assert!(UrlTemplate::read(Written::Text(text)).is_err(), "{text}");
        }
    }
}
