//! Which clients may request which paths, and how often.
//!
//! The gateway collects the rules of a request while it looks for its route, in a [`RuleSet`]. Invariant: a
//! rule with a path holds for every spelling of a request that leads there.

use super::authentication::{self, BasicAuth, ForwardAuth};
use super::condition::Names;
use super::context::Context;
use super::cors::{self, Cors};
use super::peers::Peers;
use super::rate_limit::{self, RateLimit};
use super::scripts::Scripts;
use crate::diagnostic::Kind;
use crate::raw::{self, ConditionSet, Requirement};
use crate::scalar::{Coverage, Fault, PathPattern, Peer};
use outboard_access::Network;
use std::net::IpAddr;

/// The rules of an app, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// At most [`RuleSet::MAX`].
    pub rules: Vec<AccessRule>,
    /// Fields in which services name users: no client may send them.
    pub identity_headers: Vec<String>,
    /// Extensions of scripts, in lower case.
    script_extensions: Vec<String>,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// The protected paths; `None`: all requests.
    pub path: Option<(PathPattern, Coverage)>,
    /// Paths to which it does not apply.
    pub except: Vec<PathPattern>,
    /// Conditions.
    pub requirement: Requirement,
    /// The admitted addresses.
    pub admission: Admission,
    /// How often a client may send requests.
    pub rate_limit: Option<RateLimit>,
    /// The longest request body.
    pub body_bytes: Option<u64>,
    /// Users and passwords.
    pub basic_auth: Option<BasicAuth>,
    /// A service that decides about requests.
    pub forward_auth: Option<ForwardAuth>,
    /// Origins whose pages may read responses.
    pub cors: Option<Cors>,
}

/// The addresses that are admitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// `None`: all.
    allow: Option<Peers>,
    deny: Peers,
}

/// The rules that a request has to satisfy, by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSet(u64);

impl RuleSet {
    /// The most rules of an app.
    pub const MAX: usize = 64;

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The indices.
    pub fn indices(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let index = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (index < u64::BITS).then_some(index as usize)
        })
    }
}

impl Access {
    /// The rules for a requested path, decoded and below the app's prefix.
    pub fn of_request(&self, path: &[u8], conditions: ConditionSet) -> RuleSet {
        if self.rules.is_empty() {
            return RuleSet::default();
        }
        let all = |rule: &AccessRule| rule.path.is_none() && !rule.excepts(path);
        self.select(conditions, all).and(self.of_result(path, conditions))
    }

    /// The rules for a path that a request leads to.
    pub fn of_result(&self, path: &[u8], conditions: ConditionSet) -> RuleSet {
        let of_path = |path| {
            self.select(conditions, |rule| {
                let coverage = rule.path.as_ref().map(|(_, coverage)| coverage);
                coverage.is_some_and(|coverage| coverage.contains(path)) && !rule.excepts(path)
            })
        };
        if self.rules.is_empty() {
            return RuleSet::default();
        }
        // A front controller routes by what follows its name in the path: /index.php/admin.
        self.path_infos(path).fold(of_path(path), |rules, rest| rules.and(of_path(rest)))
    }

    /// What follows the name of a script in a path.
    fn path_infos<'p>(&self, path: &'p [u8]) -> impl Iterator<Item = &'p [u8]> {
        let slashes = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
        let ends = slashes.map(|(index, _)| index);
        ends.filter(|index| self.is_script(&path[..*index])).map(|index| &path[index..])
    }

    fn is_script(&self, path: &[u8]) -> bool {
        self.script_extensions.iter().any(|extension| {
            let extension = extension.as_bytes();
            let start = path.len().checked_sub(extension.len());
            start.is_some_and(|start| path[start..].eq_ignore_ascii_case(extension))
        })
    }

    fn select(&self, conditions: ConditionSet, applies: impl Fn(&AccessRule) -> bool) -> RuleSet {
        let rules = self.rules.iter().enumerate();
        let rules = rules.filter(|(_, rule)| rule.requirement.holds(conditions) && applies(rule));
        RuleSet(rules.fold(0, |set, (index, _)| set | 1 << index))
    }
}

impl AccessRule {
    fn excepts(&self, path: &[u8]) -> bool {
        self.except.iter().any(|pattern| pattern.matches(path))
    }
}

impl Admission {
    pub(super) fn new(allow: &[Peer], deny: &[Peer]) -> Self {
        let allow = (!allow.is_empty()).then(|| Peers::new(allow));
        Self { allow, deny: Peers::new(deny) }
    }

    /// Whether a client is refused; one on a Unix socket has no address.
    pub fn refuses(&self, client: Option<IpAddr>) -> bool {
        self.deny.contains(client) || self.allow.as_ref().is_some_and(|all| !all.contains(client))
    }
}

/// The address that a client counts as: for IPv6 its network of 64 bits (RFC 4291 2.5.4).
pub fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        address @ IpAddr::V6(_) => Network::new(address, 64).address,
    }
}

pub(super) fn access(
    raw: &raw::App,
    scripts: &Scripts<'_>,
    names: &Names,
    base: &[&str],
    context: &mut Context<'_>,
) -> Access {
    if raw.access.len() > RuleSet::MAX {
        let fault = Fault::new(format!("an app has at most {} access rules", RuleSet::MAX));
        context.value(&[base, &["access"]].concat(), Kind::BadValue, fault);
        return Access::default();
    }
    let one = |(index, rule): (usize, &raw::Access)| {
        let index = index.to_string();
        rule_of(rule, &[base, &["access", &index]].concat(), (scripts, names), context)
    };
    let rules: Vec<AccessRule> = raw.access.iter().enumerate().map(one).collect();
    let services = rules.iter().filter_map(|rule| rule.forward_auth.as_ref());
    let identity_headers = services.flat_map(|service| service.copy_headers.clone()).collect();
    Access { rules, identity_headers, script_extensions: scripts.php.extensions.clone() }
}

fn rule_of(
    raw: &raw::Access,
    place: &[&str],
    (scripts, names): (&Scripts<'_>, &Names),
    context: &mut Context<'_>,
) -> AccessRule {
    let mut report = |key: &str, fault| {
        context.value(&[place, &[key]].concat(), Kind::BadValue, fault);
    };
    let path = raw.path.as_ref().and_then(|pattern| match Coverage::of(pattern) {
        Ok(coverage) => Some((pattern.clone(), coverage)),
        Err(fault) => {
            report("path", fault);
            None
        }
    });
    let rate_limit =
        raw.rate_limit.as_ref().map(rate_limit::of_rule).and_then(|limit| match limit {
            Ok(limit) => Some(limit),
            Err(fault) => {
                report("rate_limit", fault);
                None
            }
        });
    let at = |key| [place, &[key]].concat();
    if names.compare_paths(&raw.conditions) {
        let fault =
            Fault::new("a condition compares a path in one spelling, and programs know more")
                .hint("write the path as `path` of the rule, which holds for every spelling");
        context.value(&at("if"), Kind::Conflict, fault);
    }
    let allow = context.peers(&at("allow"), &raw.allow);
    let deny = context.peers(&at("deny"), &raw.deny);
    AccessRule {
        path,
        requirement: names.requirement(&raw.conditions, &at("if"), context),
        except: raw.except.clone(),
        admission: Admission::new(&allow, &deny),
        rate_limit,
        body_bytes: raw.body.map(|size| size.0),
        cors: raw.cors.as_ref().map(|raw| cors::cors(raw, place, context)),
        forward_auth: raw
            .forward_auth
            .as_ref()
            .map(|auth| authentication::forward_auth(auth, place, scripts, context)),
        basic_auth: raw
            .basic_auth
            .as_ref()
            .map(|auth| authentication::basic_auth(auth, place, context)),
    }
}

#[cfg(test)]
mod tests;
