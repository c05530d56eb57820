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
        report("origins", fault.hint("write \"https://app.example.org\" without a path, or \"*\""));
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
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    host.is_some_and(|host| {
        let is_plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte)
        };
        !host.is_empty() && host.bytes().all(is_plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for good in ["https://a.test", "http://localhost:3000", "https://[::1]:8443"] {
            assert!(is_origin(good), "{good}");
        }
        for bad in
            ["a.test", "https://", "https://a.test/", "https://A.test", "https://*.a.test", "null"]
        {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
