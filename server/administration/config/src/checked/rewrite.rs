//! Rules that change the path of a request, or respond to it.
//!
//! Patterns match the decoded path, so a capture group can hold any bytes. In a redirect and in a
//! query it is percent-encoded: it can neither break the response header nor add a parameter.

use super::condition::Names;
use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw::{self, Requirement, RewriteWhen};
use crate::scalar::Fault;
use regex::bytes::{Captures, Regex};
use std::sync::Arc;

/// A rewrite rule. The gateway applies the rules in order.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// Matched against the decoded path below the app's prefix, with a leading `/`.
    pub pattern: Regex,
    /// Requests to which the rule applies.
    pub when: RewriteWhen,
    /// Conditions.
    pub requirement: Requirement,
    /// What happens to matching requests.
    pub action: RewriteAction,
    /// Whether a match skips the remaining rules.
    pub last: bool,
}

/// What happens to a matching request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteAction {
    /// An internal rewrite to this path, which starts with `/`.
    To(Replacement),
    /// It is answered with a redirect.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// The `Location`.
        to: Replacement,
    },
    /// A response with this status, 400 to 599, or 200 with a text.
    Status(u16, Option<Arc<str>>),
}

/// A path or URL with references to capture groups, and its query string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The parts, in order, up to a `?`.
    pub parts: Vec<ReplacementPart>,
    /// The parts after a `?`; `None` without one: the request's query string is preserved. Empty:
    /// no query string.
    pub query: Option<Vec<ReplacementPart>>,
}

/// A part of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplacementPart {
    /// Literal text.
    Text(String),
    /// This capture group, or nothing if it did not match; 0 is the whole match. The group exists.
    Group(usize),
}

/// The result of a rule for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// Go on with this path.
    To {
        /// Decoded, `/` first; not normalised.
        path: Vec<u8>,
        /// Encoded; `None`: the request's own query stays.
        query: Option<Vec<u8>>,
    },
    /// Answer with a redirect.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// The `Location` up to its query, fit for a header.
        location: Vec<u8>,
        /// Encoded; `None`: the request's own query goes along.
        query: Option<Vec<u8>>,
    },
    /// Respond with this status, and this text.
    Status(u16, Option<Arc<str>>),
}

impl Rewrite {
    /// Applies the rule to a decoded path; `None` if it does not match. The caller has checked
    /// `when` before.
    pub fn apply(&self, path: &[u8]) -> Option<Rewritten> {
        let captures = self.pattern.captures(path)?;
        Some(match &self.action {
            RewriteAction::To(to) => Rewritten::To {
                path: fill(&to.parts, &captures, Encoding::None),
                query: to.query(&captures),
            },
            RewriteAction::Redirect { status, to } => Rewritten::Redirect {
                status: *status,
                location: fill(&to.parts, &captures, Encoding::Path),
                query: to.query(&captures),
            },
            RewriteAction::Status(status, body) => Rewritten::Status(*status, body.clone()),
        })
    }
}

impl Replacement {
    fn query(&self, captures: &Captures<'_>) -> Option<Vec<u8>> {
        self.query.as_ref().map(|parts| fill(parts, captures, Encoding::Query))
    }
}

/// Percent-encoding of a capture group.
#[derive(Clone, Copy)]
enum Encoding {
    None,
    Path,
    Query,
}

impl Encoding {
    /// RFC 3986: in a capture group, unreserved characters and those without a special meaning in
    /// this position are literal; in the rule's own text, all printable ASCII but spaces.
    fn is_literal(self, byte: u8, own: bool) -> bool {
        let special: &[u8] = match self {
            Encoding::None => return true,
            Encoding::Path => b"-._~/!$'()*,;:@&=+",
            Encoding::Query => b"-._~/!$'()*,:@",
        };
        byte.is_ascii_alphanumeric() || special.contains(&byte) || (own && byte.is_ascii_graphic())
    }

    fn push(self, out: &mut Vec<u8>, bytes: &[u8], own: bool) {
        for byte in bytes {
            match self.is_literal(*byte, own) {
                true => out.push(*byte),
                false => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            }
        }
    }
}

fn fill(parts: &[ReplacementPart], captures: &Captures<'_>, encoding: Encoding) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            ReplacementPart::Text(text) => encoding.push(&mut out, text.as_bytes(), true),
            ReplacementPart::Group(group) => {
                let matched = captures.get(*group).map_or(&b""[..], |group| group.as_bytes());
                encoding.push(&mut out, matched, false);
            }
        }
    }
    out
}

/// The rule, or `None` if it is invalid.
pub(super) fn rule(
    raw: &raw::Rewrite,
    names: &Names,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<Rewrite> {
    let at = |key: &'static str| [place, &[key]].concat();
    let action = match (raw.status, &raw.to) {
        (None, Some(to)) => {
            let to = replacement(&to.0, &raw.pattern.0, &at("to"), context)?;
            RewriteAction::To(starting_with_slash(to, &at("to"), context)?)
        }
        (Some(status @ (301 | 302 | 303 | 307 | 308)), Some(to)) => RewriteAction::Redirect {
            status,
            to: replacement(&to.0, &raw.pattern.0, &at("to"), context)?,
        },
        (Some(status), None) if status == 200 && raw.body.is_some() || status >= 400 => {
            let body = raw.body.as_ref().map(|body| body.0.as_str().into());
            RewriteAction::Status(status, body)
        }
        (status, _) => {
            let fault = match status {
                None => Fault::new("the rule has neither `to` nor `status`")
                    .hint("`to` is the new path, `status` the status of a response"),
                Some(301 | 302 | 303 | 307 | 308) => {
                    Fault::new("a redirect needs `to`").hint("add the target URL")
                }
                Some(400..=599) => {
                    Fault::new("an error status cannot have `to`").hint("remove `to`")
                }
                Some(status) => Fault::new(format!("{status} is not a valid status for a rule"))
                    .hint("a redirect (301, 302, 303, 307, 308), an error (400 to 599), or 200 with a `body`"),
            };
            let key = if status.is_some() { at("status") } else { place.to_vec() };
            context.value(&key, Kind::Conflict, fault);
            return None;
        }
    };
    if raw.body.is_some() && !matches!(action, RewriteAction::Status(..)) {
        let fault =
            Fault::new("only a response has a `body`").hint("add `status = 200`, without `to`");
        context.value(&at("body"), Kind::Conflict, fault);
    }
    Some(Rewrite {
        pattern: raw.pattern.0.clone(),
        when: raw.when,
        requirement: names.requirement(&raw.conditions, &at("if"), context),
        action,
        last: raw.last,
    })
}

fn starting_with_slash(
    to: Replacement,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<Replacement> {
    let fits = match to.parts.first() {
        Some(ReplacementPart::Text(text)) => text.starts_with('/'),
        Some(ReplacementPart::Group(_)) => true,
        None => false,
    };
    if !fits {
        let fault = Fault::new("the new path does not start with a slash")
            .hint("for a redirect, add a `status` such as 302");
        context.value(place, Kind::BadValue, fault);
    }
    fits.then_some(to)
}

fn replacement(
    text: &str,
    pattern: &Regex,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<Replacement> {
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    let parsed = if text.chars().any(char::is_control) {
        Err(Fault::new("control characters cannot be part of an address"))
    } else {
        parts(path, pattern).and_then(|parts| {
            Ok(Replacement { parts, query: query.map(|q| self::parts(q, pattern)).transpose()? })
        })
    };
    parsed.map_err(|fault| context.value(place, Kind::BadValue, fault)).ok()
}

fn parts(mut text: &str, pattern: &Regex) -> Result<Vec<ReplacementPart>, Fault> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    while let Some(at) = text.find('$') {
        literal.push_str(&text[..at]);
        text = &text[at + 1..];
        if let Some(rest) = text.strip_prefix('$') {
            literal.push('$');
            text = rest;
            continue;
        }
        let (group, rest) = group(text, pattern)?;
        if !literal.is_empty() {
            parts.push(ReplacementPart::Text(std::mem::take(&mut literal)));
        }
        parts.push(ReplacementPart::Group(group));
        text = rest;
    }
    literal.push_str(text);
    if !literal.is_empty() {
        parts.push(ReplacementPart::Text(literal));
    }
    Ok(parts)
}

/// The group named by the text after a `$`, and the rest of the text.
fn group<'t>(text: &'t str, pattern: &Regex) -> Result<(usize, &'t str), Fault> {
    let (name, rest) = match text.strip_prefix('{') {
        Some(inner) => {
            inner.split_once('}').ok_or_else(|| Fault::new("`${` is not closed by `}`"))?
        }
        None => text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())),
    };
    let group = match name.parse::<usize>() {
        Ok(number) => Some(number).filter(|number| *number < pattern.captures_len()),
        Err(_) => pattern.capture_names().position(|known| known == Some(name)),
    };
    match group {
        Some(group) => Ok((group, rest)),
        None if name.is_empty() => Err(Fault::new("`$` without a group")
            .hint("write `$1` for a group, `$$` for a dollar sign")),
        None => Err(Fault::new(format!("`match` has no group `{name}`"))
            .hint(format!("it has {} group(s)", pattern.captures_len() - 1))),
    }
}

#[cfg(test)]
mod tests;
