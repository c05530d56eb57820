//! The access rules of a request: which clients may request a path, and how often.
//!
//! Called by [`crate::dispatch`] before a request's route is known and again when the route has led to
//! further rules. Invariants: a rule is checked once per request; addresses are checked before any rate
//! limit counts the request, and passwords after that; without rules a request costs nothing here.

pub(crate) mod admin;
pub(crate) mod basic_auth;
mod cors;
mod forward_auth;

pub(crate) use forward_auth::remove_identity;

use crate::access::Taken;
use crate::access::client_key::{self, ClientKey};
use crate::app::App;
use crate::generation::Generation;
use crate::refusal::Refusal;
use crate::request::{Request, ResponseSummary};
use outboard_access::{BucketId, KeyHash, Spending};
use outboard_config::{RateLimit, RuleSet};
use outboard_http_server::{HeaderBlock, ListenerContext, ResponseWriter};
use outboard_log::{Reason, Wall};
use std::net::IpAddr;
use std::rc::Rc;

/// A rule that a request violates.
enum Violation {
    Address,
    Rate { index: usize, spending: Spending },
}

/// Limits whose server has to be asked: the index of their rule, and the client's bucket.
type Asked = Vec<(usize, BucketId)>;

/// Why a connection of a client is not accepted.
pub(crate) fn refuses(
    generation: &Generation,
    listener: &ListenerContext,
    address: Option<IpAddr>,
) -> Option<Reason> {
    let bans = &generation.access.bans;
    if listener.admission.refuses(address) {
        return Some(Reason::AddressDenied);
    }
    let is_banned =
        !bans.is_empty() && address.is_some_and(|ip| bans.is_banned(ip, Wall::now().unix_s()));
    is_banned.then_some(Reason::Banned)
}

/// Admits a request that satisfies the rules, or responds to it as a rule demands.
///
/// # Errors
/// The request violates a rule.
pub(crate) async fn admit(
    request: &mut Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    rules: RuleSet,
) -> Result<Option<ResponseSummary>, Refusal> {
    if rules.is_empty() {
        return Ok(None);
    }
    let violation = match check(request, app, rules) {
        Ok(asked) if asked.is_empty() => None,
        Ok(asked) => Box::pin(ask(app, asked)).await,
        Err(violation) => Some(violation),
    };
    match violation {
        None => {
            let mut all = rules.indices().map(|index| &app.config.access.rules[index]);
            let needs_more = all.any(|rule| {
                rule.cors.is_some() || rule.basic_auth.is_some() || rule.forward_auth.is_some()
            });
            // Boxed, so that it does not enlarge the task of every request.
            match needs_more {
                true => Box::pin(authenticate(request, response, app, rules)).await,
                false => Ok(None),
            }
        }
        Some(Violation::Address) => Err(Reason::AddressDenied.into()),
        Some(Violation::Rate { index, spending }) => {
            let limit = app.config.access.rules[index].rate_limit.as_ref();
            let fields = limit.map(|limit| rate_fields(limit, &spending)).unwrap_or_default();
            Err(Refusal::with_fields(Reason::RateLimited, fields))
        }
    }
}

async fn authenticate(
    request: &mut Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    rules: RuleSet,
) -> Result<Option<ResponseSummary>, Refusal> {
    if let Some(responded) = cors::try_respond(request, response, app, rules).await {
        return Ok(Some(responded));
    }
    basic_auth::check(request, app, rules).await?;
    forward_auth::admit(request, response, app, rules).await
}

fn check(request: &mut Request<'_>, app: &App, rules: RuleSet) -> Result<Asked, Violation> {
    let client = request.client_ip();
    let all = &app.config.access.rules;
    let bodies = rules.indices().filter_map(|index| all[index].body_bytes);
    bodies.for_each(|bytes| request.limit_body(bytes));
    if rules.indices().any(|index| all[index].admission.refuses(client)) {
        return Err(Violation::Address);
    }
    let mut asked = Asked::new();
    let mut of_address = None;
    let (head, input) = request.head();
    for index in rules.indices() {
        if let Some((config, limit)) =
            all[index].rate_limit.as_ref().zip(app.rate_limits.of_rule(index))
        {
            let key = client_key::of(&config.key, client, head, input);
            let hash = || KeyHash::of(&key);
            let hash = match &key {
                ClientKey::Address(_) => *of_address.get_or_insert_with(hash),
                ClientKey::Value(_) => hash(),
            };
            match limit.take(&key, hash, 1) {
                Taken::Known(spending) if !spending.is_admitted => {
                    return Err(Violation::Rate { index, spending });
                }
                Taken::Known(_) => {}
                Taken::Ask(id) => asked.push((index, id)),
            }
        }
    }
    Ok(asked)
}

/// Waits for the server of shared limits, for a bounded time.
async fn ask(app: &App, asked: Asked) -> Option<Violation> {
    for (index, id) in asked {
        let Some(limit) = app.rate_limits.of_rule(index) else { continue };
        let spending = limit.ask(id, 1).await;
        if !spending.is_admitted {
            return Some(Violation::Rate { index, spending });
        }
    }
    None
}

/// When the client may try again (RFC 9110 10.2.3), and the rate (draft-ietf-httpapi-ratelimit-headers).
fn rate_fields(limit: &RateLimit, spending: &Spending) -> HeaderBlock {
    let retry_s = spending.retry_ns.div_ceil(1_000_000_000).max(1);
    let mut fields = HeaderBlock::default();
    let mut add = |name: &str, value: String| {
        fields.add(name.as_bytes(), value.as_bytes()).expect("numbers are valid values");
    };
    add("Retry-After", retry_s.to_string());
    if limit.sends_fields {
        let window_s = limit.rate.full_ns().div_ceil(1_000_000_000);
        add("RateLimit-Policy", format!("\"default\";q={};w={window_s}", limit.rate.burst()));
        add("RateLimit", format!("\"default\";r={};t={retry_s}", spending.remaining));
    }
    fields
}

#[cfg(test)]
mod tests;
