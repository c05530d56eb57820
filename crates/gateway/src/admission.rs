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
use crate::request::{RequestContext, ResponseSummary, refuse, refuse_with_fields};
use outboard_access::{BucketId, KeyHash, Spending};
use outboard_config::{RateLimit, RuleSet};
use outboard_http_server::{Connection, HeaderBlock, ListenerContext};
use outboard_log::{Reason, Wall};
use std::net::IpAddr;
use std::rc::Rc;

/// A rule that refuses a request.
enum Refusal {
    Address,
    Rate { index: usize, spending: Spending },
}

/// Limits whose server has to be asked: the index of their rule, and the client's bucket.
type Asked = Vec<(usize, BucketId)>;

/// Responds to a client that is banned; `None` if it is not.
pub(crate) async fn try_refuse_banned(
    connection: &mut Connection,
    ctx: &RequestContext,
    generation: &Generation,
) -> Option<ResponseSummary> {
    let bans = &generation.access.bans;
    if bans.is_empty() || !bans.is_banned(ctx.client_ip(connection)?, ctx.started.unix_s()) {
        return None;
    }
    Some(Box::pin(refuse(connection, ctx, None, Reason::Banned)).await)
}

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

/// Responds to a request that does not satisfy one of the rules; `None` if it satisfies all.
pub(crate) async fn try_refuse(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    rules: RuleSet,
) -> Option<ResponseSummary> {
    if rules.is_empty() {
        return None;
    }
    let refusal = match check(connection, ctx, app, rules) {
        Ok(asked) if asked.is_empty() => None,
        Ok(asked) => Box::pin(ask(app, asked)).await,
        Err(refusal) => Some(refusal),
    };
    let Some(refusal) = refusal else {
        let mut all = rules.indices().map(|index| &app.config.access.rules[index]);
        let needs_more = all.any(|rule| {
            rule.cors.is_some() || rule.basic_auth.is_some() || rule.forward_auth.is_some()
        });
        // Boxed, so that it does not enlarge the task of every request.
        return match needs_more {
            true => Box::pin(authenticate(connection, ctx, app, rules)).await,
            false => None,
        };
    };
    match refusal {
        Refusal::Address => {
            Some(Box::pin(refuse(connection, ctx, Some(app), Reason::AddressDenied)).await)
        }
        Refusal::Rate { index, spending } => {
            let limit = app.config.access.rules[index].rate_limit.as_ref()?;
            let fields = rate_fields(limit, &spending);
            let reason = Reason::RateLimited;
            Some(Box::pin(refuse_with_fields(connection, ctx, Some(app), reason, fields)).await)
        }
    }
}

async fn authenticate(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    rules: RuleSet,
) -> Option<ResponseSummary> {
    if let Some(responded) = cors::try_respond(connection, ctx, app, rules).await {
        return Some(responded);
    }
    match basic_auth::try_refuse(connection, ctx, app, rules).await {
        Some(refused) => Some(refused),
        None => forward_auth::try_refuse(connection, ctx, app, rules).await,
    }
}

fn check(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &App,
    rules: RuleSet,
) -> Result<Asked, Refusal> {
    let client = ctx.client_ip(connection);
    let all = &app.config.access.rules;
    let bodies = rules.indices().filter_map(|index| all[index].body_bytes);
    bodies.for_each(|bytes| connection.limit_body(bytes));
    if rules.indices().any(|index| all[index].admission.refuses(client)) {
        return Err(Refusal::Address);
    }
    let mut asked = Asked::new();
    let mut of_address = None;
    for index in rules.indices() {
        if let Some((config, limit)) =
            all[index].rate_limit.as_ref().zip(app.rate_limits.of_rule(index))
        {
            let buffers = connection.buffers();
            let key = client_key::of(&config.key, client, &buffers.head, &buffers.input);
            let hash = || KeyHash::of(&key);
            let hash = match &key {
                ClientKey::Address(_) => *of_address.get_or_insert_with(hash),
                ClientKey::Value(_) => hash(),
            };
            match limit.take(&key, hash, 1) {
                Taken::Known(spending) if !spending.is_admitted => {
                    return Err(Refusal::Rate { index, spending });
                }
                Taken::Known(_) => {}
                Taken::Ask(id) => asked.push((index, id)),
            }
        }
    }
    Ok(asked)
}

/// Waits for the server of shared limits, for a bounded time.
async fn ask(app: &App, asked: Asked) -> Option<Refusal> {
    for (index, id) in asked {
        let Some(limit) = app.rate_limits.of_rule(index) else { continue };
        let spending = limit.ask(id, 1).await;
        if !spending.is_admitted {
            return Some(Refusal::Rate { index, spending });
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
