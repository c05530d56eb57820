//! [`Problem`]: an error that an authority reports (RFC 7807, RFC 8555 6.7).

use serde::Deserialize;
use std::fmt;

/// See the module.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    kind: String,
    detail: String,
    subproblems: Vec<Problem>,
    /// The status of the response; 0 if the problem is a part of another one.
    #[serde(skip)]
    pub(crate) status: u16,
    /// The pause that the response requests.
    #[serde(skip)]
    pub(crate) retry_after_s: Option<u64>,
}

/// Longer texts of an authority are cut: they are logged.
const MAX_TEXT_CHARS: usize = 500;

impl Problem {
    /// The problem of a response.
    pub(crate) fn of(status: u16, body: &[u8], retry_after_s: Option<u64>) -> Self {
        let problem: Self = serde_json::from_slice(body).unwrap_or_default();
        Self { status, retry_after_s, ..problem }
    }

    /// Whether it is of this type of RFC 8555.
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.strip_prefix("urn:ietf:params:acme:error:") == Some(kind)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The problems of the parts are more exact.
        let first = self.subproblems.first().unwrap_or(self);
        let kind = first.kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(&first.kind);
        let text: String = first.detail.chars().take(MAX_TEXT_CHARS).collect();
        match (text.is_empty(), kind.is_empty()) {
            (false, false) => write!(f, "{text} ({kind})"),
            (false, true) => f.write_str(&text),
            (true, false) => f.write_str(kind),
            (true, true) => write!(f, "status {}", self.status),
        }
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_sentence_with_its_type() {
        let body = br#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many","status":429}"#;
        let problem = Problem::of(429, body, Some(60));
        assert!(problem.is("rateLimited") && !problem.is("badNonce"));
        assert_eq!(problem.to_string(), "too many (rateLimited)");
        assert_eq!(Problem::of(502, b"<html>", None).to_string(), "status 502");
        let long = format!(r#"{{"detail":"{}"}}"#, "x".repeat(10_000));
        assert_eq!(Problem::of(400, long.as_bytes(), None).to_string().len(), MAX_TEXT_CHARS);
    }
}
