//! Who a client is: users and passwords, or another service that decides.
//!
//! Invariant: a rule with users that cannot be read, or that nobody can be, is an error and no open path.

use super::context::Context;
use super::proxy;
use super::scripts::Scripts;
use crate::diagnostic::Kind;
use crate::raw::{self, ProxyTarget};
use crate::scalar::{Fault, HeaderName};
use outboard_access::{PasswordHash, Users};
use std::path::Path;

/// A file with users has less.
const USERS_MAX_BYTES: u64 = 16 << 20;

/// Users and passwords.
#[derive(Clone, Debug)]
pub struct BasicAuth {
    /// The value of WWW-Authenticate.
    pub challenge: String,
    /// The users; at least one.
    pub users: Users,
}

/// A service that decides about requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardAuth {
    /// Who decides.
    pub service: AuthService,
    /// Fields of its response that the request gets.
    pub copy_headers: Vec<String>,
    /// Maximum time for the response.
    pub timeout_ms: u64,
}

/// Who decides about requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthService {
    /// Another server.
    Upstream {
        /// Its URL, or a group of servers.
        to: ProxyTarget,
        /// Whether the certificate of an `https` URL is verified.
        verifies: bool,
    },
    /// The script of the app with this path.
    Script(String),
}

pub(super) fn forward_auth(
    raw: &raw::ForwardAuth,
    place: &[&str],
    scripts: &Scripts<'_>,
    context: &mut Context<'_>,
) -> ForwardAuth {
    let place = [place, &["forward_auth"]].concat();
    // What decides the meaning of a request, and what scripts and upstreams do not get from clients.
    const OTHERS: [&str; 8] = [
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "upgrade",
        "expect",
        "proxy",
        "authorization",
    ];
    for (index, HeaderName(name)) in raw.copy_headers.iter().enumerate() {
        let lower = name.to_ascii_lowercase();
        let is_claim = lower.starts_with("x-forwarded-") || lower.contains('_');
        if is_claim || OTHERS.contains(&&*lower) {
            let fault = Fault::new(format!("`{name}` cannot name a user"))
                .hint("use another field, such as Remote-User, without an underscore");
            let index = index.to_string();
            let place = [&place[..], &["copy_headers", &index]].concat();
            context.value(&place, Kind::BadValue, fault);
        }
    }
    ForwardAuth {
        service: service(raw, &place, scripts, context),
        copy_headers: raw.copy_headers.iter().map(|name| name.0.clone()).collect(),
        timeout_ms: raw.timeout.0,
    }
}

fn service(
    raw: &raw::ForwardAuth,
    place: &[&str],
    scripts: &Scripts<'_>,
    context: &mut Context<'_>,
) -> AuthService {
    match (&raw.upstream, &raw.script) {
        (Some(url), None) => {
            let to = proxy::target(&url.0).unwrap_or_else(|fault| {
                context.value(&[place, &["upstream"]].concat(), Kind::BadValue, fault);
                ProxyTarget::Url(String::new())
            });
            // The path of a URL is the service's own.
            let to = match to {
                ProxyTarget::Url(_) => ProxyTarget::Url(url.0.clone()),
                group @ ProxyTarget::Group { .. } => group,
            };
            AuthService::Upstream { to, verifies: raw.verify }
        }
        (None, Some(script)) => {
            AuthService::Script(scripts.find(&script.0, &[place, &["script"]].concat(), context))
        }
        _ => {
            let fault = Fault::new("either `upstream` or `script` decides");
            context.value(place, Kind::BadValue, fault);
            AuthService::Script(String::new())
        }
    }
}

pub(super) fn basic_auth(
    raw: &raw::BasicAuth,
    place: &[&str],
    context: &mut Context<'_>,
) -> BasicAuth {
    let place = [place, &["basic_auth"]].concat();
    let realm = &raw.realm.0;
    if realm.contains(['"', '\\']) || realm.chars().any(char::is_control) {
        let fault = Fault::new("a realm has no quotes, backslashes and control characters");
        context.value(&[&place[..], &["realm"]].concat(), Kind::BadValue, fault);
    }
    let mut users = Vec::new();
    if let Some(written) = &raw.file {
        let place = [&place[..], &["file"]].concat();
        let path = context.file(&place, written);
        match read_users(context, &path) {
            Ok(found) if found.is_empty() => {
                let fault = Fault::new("the file has no user: no client could authenticate")
                    .hint("add one: htpasswd -B FILE NAME");
                context.value(&place, Kind::BadValue, fault);
            }
            Ok(found) => users.extend(found),
            Err(Some(fault)) => context.value(&place, Kind::BadValue, fault),
            // Reported as a path.
            Err(None) => {}
        }
    }
    for (user, hash) in &raw.users {
        match PasswordHash::parse(&hash.0) {
            Ok(hash) => users.push((user.clone(), hash)),
            Err(unusable) => {
                let fault = Fault::new(unusable.to_string());
                let place = [&place[..], &["users", user]].concat();
                context.value(&place, Kind::BadValue, fault);
            }
        }
    }
    if raw.file.is_none() && raw.users.is_empty() {
        let fault = Fault::new("no user can authenticate: `file` and `users` are missing");
        context.value(&place, Kind::BadValue, fault);
    }
    let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
    BasicAuth { challenge, users: Users::new(users) }
}

/// The users of a file; no fault if it cannot be read.
fn read_users(
    context: &Context<'_>,
    path: &Path,
) -> Result<Vec<(String, PasswordHash)>, Option<Fault>> {
    let bytes = context.disk.read(path, USERS_MAX_BYTES).map_err(|_| None)?;
    if bytes.len() as u64 > USERS_MAX_BYTES {
        return Err(Some(Fault::new("the file is larger than 16 MiB")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Some(Fault::new("the file is not UTF-8")))?;
    Users::read(&text).map_err(|unusable| Some(Fault::new(unusable.to_string())))
}

#[cfg(test)]
mod tests;
