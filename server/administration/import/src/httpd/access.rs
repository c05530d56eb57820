//! `Require`, `Order`, `Allow`, `Deny` and `AuthUserFile` of a section.
//!
//! Invariant: what cannot be expressed refuses all clients, and is listed.

use crate::access::{AccessRule, LOCAL, network};
use crate::directive::Directive;
use crate::draft::{App, Draft};

/// Whether a statement is translated here.
pub(super) fn is_about_access(name: &str) -> bool {
    [
        "require",
        "order",
        "allow",
        "deny",
        "satisfy",
        "authtype",
        "authname",
        "authuserfile",
        "authbasicprovider",
        "<requireany",
        "<requireall",
        "<requirenone",
    ]
    .contains(&name)
}

/// What a section says about its clients.
enum Admitted {
    All,
    None,
    Some(AccessRule),
}

/// Adds the rule of these statements for paths with these patterns. Returns whether all clients are refused,
/// which the caller expresses.
#[must_use]
pub(super) fn translate(
    statements: &[Directive],
    patterns: Option<&[String]>,
    app: &mut App,
    draft: &mut Draft,
) -> bool {
    let admitted = match requirements(statements) {
        all if !all.is_empty() => by_requirements(&all, statements, draft),
        _ => by_order(statements, draft),
    };
    match admitted {
        Admitted::All => false,
        Admitted::None => true,
        Admitted::Some(rule) => {
            rule.add_to(app, patterns);
            false
        }
    }
}

fn requirements(statements: &[Directive]) -> Vec<&Directive> {
    let mut all = Vec::new();
    for one in statements {
        match one.name.as_str() {
            "require" | "<requireall" | "<requirenone" => all.push(one),
            "<requireany" => all.extend(requirements(&one.children)),
            _ => {}
        }
    }
    all
}

/// Several requirements are alternatives (mod_authz_core).
fn by_requirements(all: &[&Directive], statements: &[Directive], draft: &mut Draft) -> Admitted {
    let mut rule = AccessRule::default();
    for one in all {
        let words: Vec<String> =
            one.arguments.iter().map(|word| word.to_ascii_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (one.name.as_str(), words.as_slice()) {
            ("require", ["all", "granted"]) => return Admitted::All,
            ("require", ["all", "denied"]) => {}
            ("require", ["local"]) => rule.allow.extend(LOCAL.map(str::to_owned)),
            ("require", ["ip", networks @ ..]) => {
                rule.allow.extend(networks.iter().filter_map(|one| network(one)));
            }
            ("require", ["valid-user"]) => password(one, statements, &mut rule, draft),
            ("require", ["user" | "group", ..]) => {
                password(one, statements, &mut rule, draft);
                draft.omit(one, "every user of the file is admitted");
            }
            ("<requireall", _) if all.len() == 1 => return all_of(one, statements, draft),
            _ => draft.omit(one, "its clients are refused: write [[app.NAME.access]]"),
        }
    }
    match (rule.allow.is_empty(), rule.password_file.is_some()) {
        (true, false) => Admitted::None,
        (false, true) => {
            draft.omit(all[0], "both the address and the password are required");
            Admitted::Some(rule)
        }
        _ => Admitted::Some(rule),
    }
}

/// All of the requirements, as those of an access rule are.
fn all_of(section: &Directive, statements: &[Directive], draft: &mut Draft) -> Admitted {
    let mut rule = AccessRule::default();
    for one in &section.children {
        let words: Vec<String> =
            one.arguments.iter().map(|word| word.to_ascii_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (one.name.as_str(), words.as_slice()) {
            ("require", ["all", "granted"]) => {}
            ("require", ["ip", networks @ ..]) if rule.allow.is_empty() => {
                rule.allow.extend(networks.iter().filter_map(|one| network(one)));
            }
            ("require", ["not", "ip", networks @ ..])
                if networks.iter().all(|one| network(one).is_some()) =>
            {
                rule.deny.extend(networks.iter().filter_map(|one| network(one)));
            }
            ("require", ["valid-user"]) => password(one, statements, &mut rule, draft),
            _ => {
                draft.omit(one, "all clients are refused: write [[app.NAME.access]]");
                return Admitted::None;
            }
        }
    }
    match rule.allow.is_empty() && rule.deny.is_empty() && rule.password_file.is_none() {
        true => Admitted::All,
        false => Admitted::Some(rule),
    }
}

fn password(one: &Directive, statements: &[Directive], rule: &mut AccessRule, draft: &mut Draft) {
    let last = |name: &str| statements.iter().rfind(|one| one.name == name);
    let is_basic = last("authtype").is_none_or(|one| one.argument(0).eq_ignore_ascii_case("basic"));
    match last("authuserfile").filter(|_| is_basic) {
        Some(file) => {
            rule.password_file = Some(file.argument(0).to_owned());
            rule.realm = last("authname").map(|one| one.argument(0).to_owned());
        }
        None => draft.omit(one, "its users are refused: there is no AuthUserFile of type Basic"),
    }
}

/// As before version 2.4 (mod_access_compat).
fn by_order(statements: &[Directive], draft: &mut Draft) -> Admitted {
    let addresses = |name: &str| -> Vec<(&Directive, &str)> {
        let all = statements.iter().filter(|one| one.name == name);
        all.flat_map(|one| one.arguments.iter().skip(1).map(move |text| (one, text.as_str())))
            .collect()
    };
    let (allow, deny) = (addresses("allow"), addresses("deny"));
    let order = statements.iter().rfind(|one| one.name == "order");
    let order = order.map_or(String::new(), |one| one.arguments.concat().to_ascii_lowercase());
    let is_all =
        |all: &[(&Directive, &str)]| all.iter().any(|(_, text)| text.eq_ignore_ascii_case("all"));
    let mut networks = |all: &[(&Directive, &str)], missing: &str| -> Vec<String> {
        let all = all.iter().filter(|(_, text)| !text.eq_ignore_ascii_case("all"));
        all.filter_map(|(one, text)| {
            let found = network(text);
            if found.is_none() {
                draft.omit(one, missing.to_owned());
            }
            found
        })
        .collect()
    };
    let allowed = networks(&allow, "not an address: its clients are refused, if others are");
    let denied = networks(&deny, "it is admitted like others: not an address");
    // By default, and with `Order deny,allow`, an `Allow` precedes each `Deny`.
    let is_denied_by_default = order == "allow,deny";
    let rule = match (is_denied_by_default, is_all(&allow), is_all(&deny)) {
        (true, _, true) => return Admitted::None,
        (true, true, _) | (false, _, false) => AccessRule { deny: denied, ..AccessRule::default() },
        (false, true, true) => return Admitted::All,
        _ if allowed.is_empty() => return Admitted::None,
        (true, false, false) => {
            AccessRule { allow: allowed, deny: denied, ..AccessRule::default() }
        }
        _ => AccessRule { allow: allowed, ..AccessRule::default() },
    };
    match rule.allow.is_empty() && rule.deny.is_empty() {
        true => Admitted::All,
        false => Admitted::Some(rule),
    }
}
