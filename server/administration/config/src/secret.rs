//! Which values are secrets, and how they are left out of what is printed.
//!
//! Used for diagnostics and for `outboard config show`. Invariant: a value is a secret because of its
//! name or of where it comes from, never because of how it looks.

use serde_json::Value;

/// What is printed instead of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// Parts of names, in lower case and without separators.
const NAMES: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "appkey",
    "privatekey",
    "credential",
    "authorization",
    "dsn",
];

/// Whether a key, a variable or a header with this name holds a secret.
pub(crate) fn is_named(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.iter().any(|known| plain.contains(known))
}

/// Whether the value at this path is a secret: by a name in it, or a password's hash, whose key is a user.
pub(crate) fn is_at(path: &[String]) -> bool {
    let are_hashes = |pair: &[String]| pair[0] == "basic_auth" && pair[1] == "users";
    path.iter().any(|key| is_named(key)) || path.windows(2).any(are_hashes)
}

/// The text without the secrets in it.
pub(crate) fn redact(text: &str, secrets: &[String]) -> String {
    // A secret that contains another one goes first.
    let mut secrets: Vec<&String> = secrets.iter().filter(|secret| !secret.is_empty()).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
        .into_iter()
        .fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), REDACTED))
}

/// The value without the secrets in it, and without the user name and the password of a URL.
pub(crate) fn redact_value(value: &Value, secrets: &[String]) -> Value {
    match value {
        Value::String(text) => without_credentials(&redact(text, secrets)).into(),
        other if secrets.contains(&other.to_string()) => REDACTED.into(),
        other => other.clone(),
    }
}

fn without_credentials(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{REDACTED}@{host}{}", &rest[end..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognised_in_every_spelling() {
        for name in ["password", "DB_PASSWORD", "X-Api-Key", "Authorization", "aws_secret_access"] {
            assert!(is_named(name), "{name}");
        }
        for name in ["root", "key", "hosts", "pass_env", "keepalive_requests"] {
            assert!(!is_named(name), "{name}");
        }
    }

    #[test]
    fn secrets_are_replaced_wherever_they_are() {
        let secrets = ["abc".to_owned(), "abcdef".to_owned(), String::new()];
        assert_eq!(redact("x abcdef abc", &secrets), "x [redacted] [redacted]");
        assert_eq!(redact_value(&8081.into(), &["8081".to_owned()]), REDACTED);
    }

    #[test]
    fn the_credentials_of_a_url_are_left_out() {
        let shown = |text: &str| redact_value(&text.into(), &[]);
        assert_eq!(shown("redis://u:p@h:1/0"), "redis://[redacted]@h:1/0");
        assert_eq!(shown("http://h/a@b"), "http://h/a@b");
    }
}
