//! Origins whose pages may read responses (CORS).

use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, HeaderName, PlainText};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// Empty: all.
    origins: Vec<String>,
    /// The value of Access-Control-Allow-Methods.
    pub methods: String,
    /// The value of Access-Control-Allow-Headers.
    pub headers: String,
    /// The value of Access-Control-Expose-Headers.
    pub expose: String,
    /// Whether requests can have credentials.
    pub credentials: bool,
    /// How long browsers remember a preflight.
    pub max_age_s: u64,
}

impl Cors {
    /// Whether every origin is admitted, without credentials.
    pub fn admits_all(&self) -> bool {
        self.origins.is_empty()
    }

    /// Whether an origin is admitted.
    pub fn admits(&self, origin: &[u8]) -> bool {
        self.admits_all() || self.origins.iter().any(|own| own.as_bytes() == origin)
    }
}

pub(super) fn cors(raw: &raw::Cors, place: &[&str], context: &mut Context<'_>) -> Cors {
    let place = [place, &["cors"]].concat();
    let mut report = |key: &str, fault| {
        context.value(&[&place[..], &[key]].concat(), Kind::BadValue, fault);
    };
    let written: Vec<&str> = raw.origins.as_slice().iter().map(|origin| &*origin.0).collect();
    let is_all = written.contains(&"*");
    if let Some(bad) = written.iter().find(|origin| **origin != "*" && !is_origin(origin)) {
        let fault = Fault::new(format!("`{bad}` is not an origin"));
        let hint = "write \"https://app.example.org\" without a path and a default port, or \"*\"";
        report("origins", fault.hint(hint));
    } else if written.is_empty() || (is_all && written.len() > 1) {
        report("origins", Fault::new("write some origins, or \"*\" alone"));
    } else if is_all && raw.credentials {
        let fault = Fault::new("with `credentials` every site could act as the user");
        report("origins", fault.hint("name the origins instead of \"*\""));
    }
    let is_token = |PlainText(name): &PlainText| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
    };
    if !raw.methods.iter().all(is_token) {
        report("methods", Fault::new("a method is written as \"PUT\""));
    }
    let names =
        |names: &[HeaderName]| names.iter().map(|name| &*name.0).collect::<Vec<_>>().join(", ");
    let methods: Vec<&str> = raw.methods.iter().map(|name| &*name.0).collect();
    let origins = written.into_iter().filter(|origin| *origin != "*");
    Cors {
        origins: origins.map(str::to_owned).collect(),
        methods: methods.join(", "),
        headers: names(&raw.headers),
        expose: names(&raw.expose),
        credentials: raw.credentials,
        max_age_s: raw.max_age.0 / 1_000,
    }
}

/// RFC 6454 6.2, as browsers send it: lower case, no path, no default port.
fn is_origin(text: &str) -> bool {
    let of = |scheme, port| text.strip_prefix(scheme).map(|host| (host, port));
    of("https://", ":443").or(of("http://", ":80")).is_some_and(|(host, default_port)| {
        let is_plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte)
        };
        !host.is_empty() && !host.ends_with(default_port) && host.bytes().all(is_plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for good in
            ["https://a.test", "http://localhost:3000", "https://[::1]:8443", "http://a.test:443"]
        {
            assert!(is_origin(good), "{good}");
        }
        for bad in [
            "a.test",
            "https://",
            "https://a.test/",
            "https://A.test",
            "https://*.a.test",
            "null",
            "https://a.test:443",
            "http://[::1]:80",
        ] {
            assert!(!is_origin(bad), "{bad}");
        }
    }

    fn of(keys: &str) -> String {
        format!("[[app.site.access]]\ncors = {{ {keys} }}\n")
    }

    #[test]
    fn only_named_origins_are_admitted_byte_by_byte() {
        let rule = |keys: &str| crate::checked::testing::site(&of(keys)).access.rules.remove(0);
        let cors = rule("origins = \"https://a.test\", headers = [\"X-A\", \"X-B\"]").cors.unwrap();
        assert!(!cors.admits_all() && cors.admits(b"https://a.test"));
        for other in
            ["https://a.test:8443", "http://a.test", "https://A.test", "https://a.test.evil", ""]
        {
            assert!(!cors.admits(other.as_bytes()), "{other}");
        }
        assert_eq!(
            (&*cors.methods, &*cors.headers, &*cors.expose),
            ("GET, HEAD, POST", "X-A, X-B", "")
        );
        assert_eq!((cors.credentials, cors.max_age_s), (false, 600));
        let cors = rule("origins = [\"*\"], methods = [\"PUT\", \"M-SEARCH\"]").cors.unwrap();
        assert!(cors.admits_all() && cors.admits(b"null"));
        assert_eq!(cors.methods, "PUT, M-SEARCH");
    }

    #[test]
    fn origins_that_no_browser_sends_and_that_are_too_many_are_errors() {
        for (keys, words) in [
            ("origins = \"https://a.test/\"", "`https://a.test/` is not an origin"),
            ("origins = [\"https://a.test\", \"a.test\"]", "`a.test` is not an origin"),
            ("origins = []", "write some origins"),
            ("origins = [\"*\", \"https://a.test\"]", "write some origins, or \"*\" alone"),
            ("origins = \"*\", credentials = true", "every site could act as the user"),
            ("origins = \"*\", methods = [\"put\"]", "a method is written as \"PUT\""),
            ("origins = \"*\", methods = [\"\"]", "a method is written as \"PUT\""),
        ] {
            let text = format!("{}{}", crate::checked::testing::APP, of(keys));
            crate::checked::testing::assert_error(&text, Kind::BadValue, 4, words);
        }
    }
}
