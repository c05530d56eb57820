//! `if` of nginx, with the variables that `map`, `geo` and `valid_referers` set: rules that hold under a condition.
//!
//! Invariant: a rule whose condition cannot be expressed is left out and listed; if it admits only some requests, its paths
//! are refused.

use super::server;
use super::surroundings::Surroundings;
use crate::access::network;
use crate::condition::{Condition, Subject, Test};
use crate::directive::Directive;
use crate::draft::{App, Draft};
use crate::globs::globs;

/// Where an `if` is.
pub(super) struct Place<'d> {
    /// The expression of its paths.
    pub(super) regex: String,
    /// A pattern of its paths; `None`: all, or there is none.
    pub(super) pattern: Option<String>,
    /// The statements of the blocks around it.
    pub(super) statements: Vec<&'d Directive>,
}

/// What has to hold.
enum Holds {
    Condition(Condition),
    /// That there is no file or directory.
    Missing,
}

pub(super) fn translate(
    one: &Directive,
    place: &Place<'_>,
    around: Surroundings<'_>,
    app: &mut App,
    draft: &mut Draft,
) {
    let expression = one.arguments.join(" ");
    let expression = expression.trim().trim_start_matches('(').trim_end_matches(')').trim();
    // Parentheses of an alternative at its end.
    let unbalanced = expression.matches('(').count()
        - expression.matches(')').count().min(expression.matches('(').count());
    let expression = format!("{expression}{}", ")".repeat(unbalanced));
    let mut words: Vec<&str> = expression.splitn(3, ' ').map(str::trim).collect();
    if let [_, "=" | "!="] = words[..] {
        words.push("");
    }
    if let (["-f", path], Some(root)) =
        (words.as_slice(), app.keys.get("root").and_then(toml::Value::as_str))
        && one.children.len() == 1
        && one.all("return").any(|child| child.argument(0) == "503" && child.arguments.len() == 1)
        && place.regex == "^"
    {
        let path = path.replace("$document_root", root);
        if !path.contains('$') {
            return app.set_in("maintenance", "file", crate::draft::text(&path));
        }
    }
    let refuses = one.all("return").any(|child| child.argument(0).starts_with('4'));
    let Some(holds) = holds(&words, place, around, app, draft) else {
        let operator = words.get(1).copied().unwrap_or_default();
        if refuses && (operator.starts_with('!') || words[0] == "$invalid_referer") {
            app.refuse(&place.regex, false);
            return draft
                .omit(one, "its paths are refused: write [app.NAME.condition.CONDITION] and `if`");
        }
        return draft.omit(
            one,
            "left out, its condition has no translation: write [app.NAME.condition.CONDITION]",
        );
    };
    let names = match holds {
        Holds::Missing => return missing(one, place, app, draft),
        Holds::Condition(condition) if refuses && condition.admits_more() => {
            app.refuse(&place.regex, false);
            return draft.omit(
                one,
                "its paths are refused: letters of a field are compared in any case here",
            );
        }
        Holds::Condition(condition) => vec![condition.add_to(app)],
    };
    app.with(names, |app| {
        for child in &one.children {
            match child.name.as_str() {
                "return" => server::redirect(child, &place.regex, app, draft),
                "rewrite" if place.regex == "^" => {
                    server::rewrite(child, child.argument(0), app, draft)
                }
                "add_header" if place.regex == "^" || place.pattern.is_some() => {
                    server::general(child, place.pattern.as_deref(), app, draft);
                }
                "break" => {}
                _ => draft.omit(child, "left out: it holds under a condition"),
            }
        }
    });
}

/// `if (!-e $request_filename) { rewrite … }`
fn missing(one: &Directive, place: &Place<'_>, app: &mut App, draft: &mut Draft) {
    for child in &one.children {
        let is_rewrite = child.name == "rewrite" && place.regex == "^";
        let to = child.argument(1).split(['?', '$']).next().unwrap_or_default();
        let is_all =
            ["^", ".", ".*", "^(.*)$", "^/(.*)$", "^.*$", "^(.+)$"].contains(&child.argument(0));
        match child.name.as_str() {
            _ if is_rewrite
                && is_all
                && to.trim_end_matches('/').ends_with(".php")
                && !child.argument(1).contains("=$") =>
            {
                app.set("front_controller", crate::draft::text(to.trim_end_matches('/')));
            }
            _ if is_rewrite => {
                app.only_missing = true;
                server::rewrite(child, child.argument(0), app, draft);
                app.only_missing = false;
            }
            "break" => {}
            _ => draft.omit(child, "left out: it holds for paths without a file"),
        }
    }
}

fn holds(
    words: &[&str],
    place: &Place<'_>,
    around: Surroundings<'_>,
    app: &mut App,
    draft: &mut Draft,
) -> Option<Holds> {
    let variable = words.first()?.strip_prefix('$');
    let condition = match (variable, words) {
        (None, ["!-e" | "!-f", path])
            if path.ends_with("$request_filename") || path.ends_with("$uri") =>
        {
            return Some(Holds::Missing);
        }
        (Some("invalid_referer"), [_]) => referer(place, app, draft)?,
        (Some(name), [_]) => match subject(name) {
            Some(subject) => Condition::other_than(&subject, &["", "0"], app)?,
            None => of_map(name, &|value| !matches!(value, "" | "0"), around)?,
        },
        (Some(name), [_, "=" | "!=", value]) => {
            let is_negated = words[1] == "!=";
            match subject(name) {
                Some(subject) if value.is_empty() => {
                    let present = Condition::other_than(&subject, &[""], app)?;
                    if is_negated { present } else { present.negated() }
                }
                Some(subject) => {
                    Condition::new(&subject, &Test::Is((*value).to_owned()), is_negated)?
                }
                None => of_map(name, &|other| (other == *value) != is_negated, around)?,
            }
        }
        (Some(name), [_, operator @ ("~" | "~*" | "!~" | "!~*"), regex]) => {
            let (subject, regex) = match name {
                "args" | "query_string" => Subject::of_query(regex)?,
                name => (subject(name)?, (*regex).to_owned()),
            };
            let test = Test::Matches { regex, ignores_case: operator.ends_with('*') };
            Condition::new(&subject, &test, operator.starts_with('!'))?
        }
        _ => return None,
    };
    Some(Holds::Condition(condition))
}

fn subject(variable: &str) -> Option<Subject> {
    Some(match variable {
        "host" | "http_host" => Subject::Host,
        "request_method" => Subject::Method,
        "remote_addr" => Subject::Client,
        _ => match variable.split_once('_')? {
            ("http", name) => Subject::Header(field(name)),
            ("cookie", name) => Subject::Cookie(name.to_owned()),
            ("arg", name) => Subject::Query(name.to_owned()),
            _ => return None,
        },
    })
}

/// `user_agent` as `User-Agent`.
pub(super) fn field(name: &str) -> String {
    let word = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split('_')
        .filter(|one| !one.is_empty() && one.is_ascii())
        .map(word)
        .collect::<Vec<_>>()
        .join("-")
}

/// The values of a `map` or `geo` for which the variable is as required: all but the default, or only the default.
fn of_map(
    variable: &str,
    fits: &dyn Fn(&str) -> bool,
    around: Surroundings<'_>,
) -> Option<Condition> {
    let is_of = |one: &&Directive| {
        matches!(one.name.as_str(), "map" | "geo")
            && one.arguments.last().is_some_and(|last| last.strip_prefix('$') == Some(variable))
    };
    let map = around.general.iter().find(is_of)?;
    let subject = match (map.name.as_str(), map.arguments.as_slice()) {
        ("geo", [_]) => Subject::Client,
        ("geo", [source, _]) if source == "$remote_addr" => Subject::Client,
        ("map", [source, _]) => subject(source.strip_prefix('$')?)?,
        _ => return None,
    };
    let (default, entries): (Vec<&Directive>, Vec<&Directive>) =
        map.children.iter().partition(|one| one.name == "default");
    let by_default = fits(default.first().map_or("", |one| one.argument(0)));
    if entries.is_empty()
        || entries.iter().any(|one| one.arguments.len() != 1 || fits(one.argument(0)) == by_default)
    {
        return None;
    }
    let mut patterns = Vec::new();
    let mut ignores_case = true;
    for one in entries {
        let key = one.word.as_str();
        match (key.strip_prefix("~*"), key.strip_prefix('~')) {
            (Some(regex), _) => patterns.push(regex.to_owned()),
            (None, Some(regex)) => {
                ignores_case = false;
                patterns.push(regex.to_owned());
            }
            // Texts of a map are compared in any case.
            (None, None) if matches!(subject, Subject::Client) => {
                network(key)
                    .filter(|_| key.chars().all(|c| c.is_ascii_hexdigit() || ".:/".contains(c)))?;
                patterns.push(key.to_owned());
            }
            (None, None) => patterns.push(format!("^{}$", regex::escape(key))),
        }
    }
    match subject {
        Subject::Client => Condition::clients(&patterns, by_default),
        subject => {
            let regex = patterns.join("|");
            Condition::new(&subject, &Test::Matches { regex, ignores_case }, by_default)
        }
    }
}

/// `$invalid_referer`: there is a referer, and it is none of those that are valid.
fn referer(place: &Place<'_>, app: &mut App, draft: &mut Draft) -> Option<Condition> {
    let one = place.statements.iter().find(|one| one.name == "valid_referers")?;
    let (mut values, mut admits_none, mut admits_others) = (Vec::new(), false, false);
    for word in &one.arguments {
        let hosts = match word.as_str() {
            "none" => {
                admits_none = true;
                continue;
            }
            "blocked" => {
                admits_others = true;
                continue;
            }
            "server_names" => app.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            // It is matched behind the scheme.
            regex if regex.starts_with('~') => {
                let (anchored, rest) =
                    (regex.starts_with("~^"), regex.trim_start_matches(['~', '^']));
                let between = if anchored { "" } else { ".*" };
                values.extend(globs(&format!("^https?://{between}({rest})"))?);
                continue;
            }
            host if host.ends_with(".*") || host.contains('/') => return None,
            host => vec![host.trim_start_matches('.').to_owned()],
        };
        for host in hosts {
            for scheme in ["http", "https"] {
                values.push(format!("{scheme}://{host}"));
                values.push(format!("{scheme}://{host}/*"));
            }
        }
    }
    if values.iter().any(|value| value.trim_end_matches("/*").contains('*')) {
        draft
            .omit(one, "carried over, but a referer with such a name in its path is valid as well");
    }
    let referer = Subject::Header("Referer".to_owned());
    let valid = Condition::of_values(&referer, values);
    if !admits_none && !admits_others {
        return Some(valid.negated());
    }
    // What is blocked does not begin with a scheme.
    let present = match admits_others {
        true => Test::Matches { regex: "^https?://".to_owned(), ignores_case: true },
        false => Test::Any,
    };
    match admits_none {
        true => Some(Condition::new(&referer, &present, false)?.unless(valid, app)),
        // A request without a referer is invalid, one whose referer has no scheme is valid.
        false => None,
    }
}
