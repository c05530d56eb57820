//! The commands of the admin socket about upstreams.

use crate::admin_reply::Refusal;
use crate::gateway::Gateway;
use crate::upstreams;
use outboard_admin_api::upstreams::{Changed, Drain, Enable, Upstreams};
use outboard_log::Level;

/// All groups.
pub(crate) fn list(gateway: &Gateway) -> Upstreams {
    Upstreams { upstreams: upstreams::status(&gateway.generation().upstreams) }
}

/// A server gets no new requests.
pub(crate) fn drain(gateway: &Gateway, drain: &Drain) -> Result<Changed, Refusal> {
    set_drained(gateway, &drain.upstream, &drain.server, true)
}

/// A server gets requests again.
pub(crate) fn enable(gateway: &Gateway, enable: &Enable) -> Result<Changed, Refusal> {
    set_drained(gateway, &enable.upstream, &enable.server, false)
}

fn set_drained(
    gateway: &Gateway,
    upstream: &str,
    server: &str,
    is_drained: bool,
) -> Result<Changed, Refusal> {
    let generation = gateway.generation();
    let Some(group) = generation.upstreams.group(upstream) else {
        return Err(Refusal::new(404, format!("there is no upstream {upstream}")));
    };
    let members = group.members();
    // A server may be named as in the configuration, which may omit the scheme.
    let is_it = |name: &str| name == server || name.strip_prefix("http://") == Some(server);
    let found = members.iter().filter(|one| {
        is_it(one.server.name())
            || is_it(one.server.origin())
                && one.server.endpoint().is_none_or(|endpoint| endpoint.name.starts_with("http"))
    });
    let servers: Vec<_> = found.map(|member| member.server.clone()).collect();
    if servers.is_empty() {
        let known: Vec<_> = members.iter().map(|member| member.server.name()).collect();
        let text = format!("{upstream} has no server {server}, but {}", known.join(", "));
        return Err(Refusal::new(404, text));
    }
    let mut was_drained = true;
    for server in &servers {
        was_drained &= server.set_drained(is_drained);
        let what = if is_drained { "drained" } else { "enabled" };
        let text = format!("upstream {upstream}: {} is {what}", server.name());
        generation.logs.error.note(Level::Info, &text);
    }
    let under_way = servers.iter().map(|server| server.figures().under_way).sum();
    Ok(Changed {
        servers: servers.iter().map(|server| server.name().to_owned()).collect(),
        was_drained,
        under_way,
    })
}
