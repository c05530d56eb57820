//! [`Approvals`]: whether names that no app lists may have certificates, as the URL of `ask` decides.
//!
//! Owned by the worker. Invariants: clients choose the names, so the names that are remembered are bounded,
//! and a refused one is not requested again for a while; without a clear approval a name has no certificate.

use crate::plan::{MINUTE, Time};
use outboard_upstream::{Client as HttpClient, Request, Url};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// How long a name is remembered.
const REMEMBERED_S: u64 = MINUTE;
const MAX_NAMES: usize = 4096;
const TIMEOUT_MS: u64 = 10_000;

/// Names of the last minute. Without room for another one, every other name counts as one of them: that costs a
/// new name a minute, and a flood of names no request.
#[derive(Debug, Default)]
pub(crate) struct RecentNames(RefCell<HashMap<String, Time>>);

impl RecentNames {
    pub(crate) fn contains(&self, name: &str, now_s: Time) -> bool {
        let mut names = self.0.borrow_mut();
        if names.len() >= MAX_NAMES {
            names.retain(|_, until_s| now_s < *until_s);
        }
        names.len() >= MAX_NAMES || names.get(name).is_some_and(|until_s| now_s < *until_s)
    }

    /// Whether it is none of them yet.
    pub(crate) fn insert(&self, name: &str, now_s: Time) -> bool {
        let is_new = !self.contains(name, now_s);
        if is_new {
            self.0.borrow_mut().insert(name.to_owned(), now_s + REMEMBERED_S);
        }
        is_new
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    refused: RecentNames,
}

impl Approvals {
    /// Whether a name is approved; an error is why not.
    pub(crate) async fn request(
        &self,
        http: &Rc<HttpClient>,
        ask: &str,
        name: &str,
        now_s: Time,
    ) -> Result<(), String> {
        if self.refused.contains(name, now_s) {
            return Err(
                "it was refused before, or too many names were in the last minute".to_owned()
            );
        }
        let outcome = request(http, ask, name).await;
        if outcome.is_err() {
            self.refused.insert(name, now_s);
        }
        outcome
    }
}

async fn request(http: &Rc<HttpClient>, ask: &str, name: &str) -> Result<(), String> {
    let separator = if ask.contains('?') { '&' } else { '?' };
    let url = Url::parse(format!("{ask}{separator}domain={name}").as_bytes());
    let mut request = Request::get(url.map_err(|error| error.message)?);
    request.timeout_ms = TIMEOUT_MS;
    request.max_redirects = 0;
    let response = http.send(request).await.map_err(|error| format!("`ask`: {}", error.message))?;
    match response.status {
        200 => Ok(()),
        status => Err(format!("`ask` responds with status {status}")),
    }
}

/// Whether an authority could issue a certificate for a name that a client has sent.
pub(crate) fn is_possible(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    name.len() <= 253
        && name.contains('.')
        && name.split('.').all(is_label)
        && !name.rsplit('.').next().is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_room_every_name_was_refused_before() {
        let names = RecentNames::default();
        assert!((0..MAX_NAMES).all(|at| names.insert(&format!("{at}.test"), 0)));
        assert!(names.contains("0.test", 0) && names.contains("new.test", REMEMBERED_S - 1));
        assert!(!names.insert("new.test", 0) && names.0.borrow().len() == MAX_NAMES);
        assert!(!names.contains("0.test", REMEMBERED_S) && names.insert("new.test", REMEMBERED_S));
    }

    #[test]
    fn only_host_names_are_requested() {
        for name in ["a.test", "a-b.c.test", "xn--bcher-kva.example"] {
            assert!(is_possible(name), "{name}");
        }
        let long = format!("{}.test", "a".repeat(64));
        for name in
            ["test", "a..test", "-a.test", "a_b.test", "*.test", "1.2.3.4", "a.test/../x", &long]
        {
            assert!(!is_possible(name), "{name}");
        }
    }
}
