//! `allow`, `deny`, `auth_basic` and `limit_req` of a block.
//!
//! Invariant: nginx decides by the first rule that has the client's address, Outboard by `deny` before `allow`;
//! where the two differ, more clients are refused, and that is listed.

use super::surroundings::Surroundings;
use crate::access::{AccessRule, Rate, network};
use crate::directive::Directive;
use crate::draft::{App, Draft};

/// Whether a statement is translated here.
pub(super) fn is_about_access(name: &str) -> bool {
    [
        "allow",
        "deny",
        "satisfy",
        "auth_basic",
        "auth_basic_user_file",
        "limit_req",
        "limit_req_zone",
    ]
    .contains(&name)
}

/// Adds the rules of these statements for paths with these patterns. `patterns` is `None` for all paths; the
/// patterns themselves are `None` if there are none for the paths, which `regex` matches.
pub(super) fn translate(
    statements: &[Directive],
    (patterns, regex): (Option<Option<Vec<String>>>, &str),
    around: Surroundings<'_>,
    app: &mut App,
    draft: &mut Draft,
) {
    let about: Vec<&Directive> =
        statements.iter().filter(|one| is_about_access(&one.name)).collect();
    if let Some(None) = patterns {
        for one in about.iter().filter(|one| !is_without_effect(one)) {
            if one.name != "limit_req" {
                app.refuse(regex, false);
            }
            draft.omit(one, "its paths have no pattern and are refused: write [[app.NAME.access]]");
        }
        return;
    }
    let patterns = patterns.flatten();
    let mut rule = by_address(&about, draft);
    password(&about, &mut rule, draft);
    rule.add_to(app, patterns.as_deref());
    for one in about.iter().filter(|one| one.name == "limit_req") {
        match rate(one, around) {
            Some(rate) => AccessRule { rate: Some(rate), ..AccessRule::default() }
                .add_to(app, patterns.as_deref()),
            None => {
                draft.omit(one, "its zone has another key than an address, a field or a cookie")
            }
        }
    }
}

fn is_without_effect(one: &Directive) -> bool {
    matches!(
        (one.name.as_str(), one.argument(0)),
        ("allow", "all")
            | ("auth_basic", "off")
            | ("satisfy" | "limit_req_zone" | "auth_basic_user_file", _)
    )
}

fn by_address(about: &[&Directive], draft: &mut Draft) -> AccessRule {
    let mut rule = AccessRule::default();
    let mut allowed: Vec<&Directive> = Vec::new();
    let rules = about.iter().filter(|one| matches!(one.name.as_str(), "allow" | "deny"));
    for one in rules {
        let address = one.argument(0);
        match (one.name.as_str(), address) {
            ("allow", "all") => {
                allowed.clear();
                break;
            }
            ("deny", "all") => {
                rule.allow = allowed.iter().filter_map(|one| peer(one.argument(0))).collect();
                if rule.allow.is_empty() {
                    rule.deny = vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()];
                }
                allowed.clear();
                break;
            }
            ("allow", _) if peer(address).is_none() => {
                draft.omit(one, "not an address: its clients are refused, if others are");
            }
            ("allow", _) => allowed.push(one),
            (_, address) => match peer(address) {
                Some(peer) => {
                    if !allowed.is_empty() {
                        draft.omit(one, "carried over, and precedes each `allow`");
                    }
                    rule.deny.push(peer);
                }
                None => draft.omit(one, "it is admitted like others: not an address"),
            },
        }
    }
    rule
}

fn peer(written: &str) -> Option<String> {
    if written == "unix:" { Some("unix".to_owned()) } else { network(written) }
}

fn password(about: &[&Directive], rule: &mut AccessRule, draft: &mut Draft) {
    let last = |name: &str| about.iter().rfind(|one| one.name == name);
    let Some(realm) = last("auth_basic") else { return };
    if realm.argument(0) == "off" {
        return draft
            .omit(realm, "the paths require what the site requires: see `except` of a rule");
    }
    match last("auth_basic_user_file").filter(|file| !file.argument(0).contains('$')) {
        Some(file) => {
            rule.password_file = Some(file.argument(0).to_owned());
            rule.realm = Some(realm.argument(0).to_owned());
        }
        None => {
            rule.deny = vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()];
            draft.omit(realm, "all clients are refused: there is no file of passwords");
        }
    }
    if let Some(any) = last("satisfy").filter(|one| one.argument(0) == "any")
        && !rule.allow.is_empty()
    {
        draft.omit(any, "both the address and the password are required");
    }
}

/// The rate of the zone that a `limit_req` names.
fn rate(one: &Directive, around: Surroundings<'_>) -> Option<Rate> {
    let parameter = |one: &Directive, name: &str| {
        one.arguments.iter().find_map(|all| all.strip_prefix(name).map(str::to_owned))
    };
    let name = parameter(one, "zone=")?;
    let zone = around.general.iter().find(|zone| {
        let named = parameter(zone, "zone=").unwrap_or_default();
        zone.name == "limit_req_zone" && named.split(':').next() == Some(&name)
    })?;
    let written = parameter(zone, "rate=")?;
    let (number, unit) = written.split_once("r/")?;
    let number: u32 = number.parse().ok().filter(|number| *number > 0)?;
    let unit = match unit {
        "s" => "s",
        "m" => "min",
        _ => return None,
    };
    let key = match zone.argument(0) {
        "$binary_remote_addr" | "$remote_addr" => "address".to_owned(),
        key => match (key.strip_prefix("$http_"), key.strip_prefix("$cookie_")) {
            (Some(field), _) => format!("header:{}", field.replace('_', "-")),
            (_, Some(cookie)) => format!("cookie:{cookie}"),
            _ => return None,
        },
    };
    let burst: i64 = parameter(one, "burst=").and_then(|burst| burst.parse().ok()).unwrap_or(0);
    Some(Rate {
        rate: format!("{number}/{unit}"),
        burst: burst.saturating_add(1).clamp(1, 1_000_000),
        key,
    })
}
