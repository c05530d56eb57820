//! Rate limits by keys of scripts: `Outboard\RateLimit`.
//!
//! Called by [`crate::app_operations`], on each thread.
//! Invariants: a script reaches the limits of its own app only; a key is no longer than [`KEY_MAX_BYTES`].

use super::client_key::ClientKey;
use super::limits::{Limit, RateLimits, Taken};
use outboard_access::{KeyHash, Spending};
use outboard_php_pool::pool::operations::Requester;
use outboard_reactor::spawn;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Completion, FetchedHead, Part, RateCall};
use std::rc::Rc;

const KEY_MAX_BYTES: usize = 1_024;

/// Why an operation is not carried out: a status, and a sentence for the script.
type Rejection = (u16, String);

/// Takes tokens of a limit, or looks at it.
pub(crate) fn begin(limits: &Rc<RateLimits>, requester: Requester, id: Tag, call: &RateCall<'_>) {
    let limit = match find(limits, call) {
        Ok(limit) => limit,
        Err((status, why)) => return reply(&requester, id, status, why.as_bytes()),
    };
    let (client, cost) = (ClientKey::Value(call.key), call.tokens);
    if !call.takes {
        return report(&requester, id, limit, &limit.look(&client, cost));
    }
    match limit.take(&client, KeyHash::of(&client), cost) {
        Taken::Known(spending) => report(&requester, id, limit, &spending),
        Taken::Ask(bucket) => {
            let (limits, name) = (limits.clone(), String::from_utf8_lossy(call.limit).into_owned());
            spawn(async move {
                let Some(limit) = limits.of_scripts(&name) else { return };
                let spending = limit.ask(bucket, cost).await;
                report(&requester, id, limit, &spending);
            });
        }
    }
}

fn find<'l>(limits: &'l RateLimits, call: &RateCall<'_>) -> Result<&'l Limit, Rejection> {
    let name = String::from_utf8_lossy(call.limit);
    let Some(limit) = limits.of_scripts(&name) else {
        let why = format!(
            "the app has no rate limit `{name}`: add [app.NAME.rate_limits.{name}] to the configuration"
        );
        return Err((404, why));
    };
    let (burst, cost) = (limit.rate().burst(), call.tokens);
    if call.key.is_empty() || call.key.len() > KEY_MAX_BYTES {
        return Err((400, format!("a key has 1 to {KEY_MAX_BYTES} bytes")));
    }
    if !(1..=burst).contains(&cost) {
        return Err((
            400,
            format!("the limit `{name}` has 1 to {burst} tokens at once, not {cost}"),
        ));
    }
    Ok(limit)
}

/// `u8` whether it is admitted, `u32` tokens that are left, `u64` nanoseconds until there are enough, `u32`
/// tokens of a full bucket, all little-endian.
fn report(requester: &Requester, id: Tag, limit: &Limit, spending: &Spending) {
    let Spending { is_admitted, remaining, retry_ns } = spending;
    let mut body = vec![u8::from(*is_admitted)];
    body.extend_from_slice(&remaining.to_le_bytes());
    body.extend_from_slice(&retry_ns.to_le_bytes());
    body.extend_from_slice(&limit.rate().burst().to_le_bytes());
    reply(requester, id, 200, &body);
}

fn reply(requester: &Requester, id: Tag, status: u16, body: &[u8]) {
    let head = FetchedHead { status, http_version: 1, url: b"", headers: b"" };
    // A worker that has ended does not wait for it.
    let _ = requester.send(&Completion { id, part: Part::Whole(head, body) });
}
