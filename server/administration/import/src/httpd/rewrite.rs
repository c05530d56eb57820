//! `RewriteRule` with its conditions.

use super::section::Place;
use crate::condition::{Condition, Subject, Test};
use crate::directive::Directive;
use crate::draft::{App, Draft, text};
use crate::pattern::is_expressible;

/// Translates the rules among the statements; each takes the conditions before it.
pub(super) fn translate(
    statements: &[Directive],
    place: &Place<'_>,
    app: &mut App,
    draft: &mut Draft,
) {
    let mut conditions: Vec<&Directive> = Vec::new();
    for one in statements {
        match one.name.as_str() {
            "rewritecond" => conditions.push(one),
            "rewriterule" => rule(one, &std::mem::take(&mut conditions), place, app, draft),
            _ => {}
        }
    }
}

fn rule(
    one: &Directive,
    conditions: &[&Directive],
    place: &Place<'_>,
    app: &mut App,
    draft: &mut Draft,
) {
    let (pattern, to) = (one.argument(0), one.argument(1));
    let flags: Vec<String> = one
        .argument(2)
        .trim_matches(['[', ']'])
        .split(',')
        .map(|flag| flag.trim().to_ascii_uppercase())
        .collect();
    let is_missing =
        |one: &&Directive| matches!(one.argument(1), "!-f" | "!-d" | "!-l" | "-f" | "-d");
    let others: Vec<&Directive> =
        conditions.iter().filter(|one| !is_missing(one)).copied().collect();
    if flags.iter().any(|flag| flag.starts_with("E=")) && to == "-" {
        // `Authorization` and such, which PHP has anyway.
        return;
    }
    let refers_to_condition =
        to.split('%').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if to.contains("%{") || pattern.starts_with('!') || refers_to_condition {
        return omit(one, conditions, "the rule has variables or a negated expression", draft);
    }
    let is_all = ["^", ".", ".*", "^(.*)$", "(.*)", "^.*$", "^(.+)$"].contains(&pattern);
    // A query with the path needs a rewrite; a path below the script is PATH_INFO.
    let refuses =
        flags.iter().any(|flag| ["F", "G"].contains(&flag.as_str()) || flag.starts_with('R'));
    let is_front =
        is_all && !refuses && !to.split_once('?').is_some_and(|(_, query)| query.contains('$'));
    let script = to.split(['?', '/']).find(|part| part.ends_with(".php"));
    let has_or = conditions.iter().any(|one| is_missing(one) && has_flag(one, "OR"));
    let understood = if has_or { None } else { understood(&others, app) };
    // Conditions that only restrict a front controller leave more paths to 404 than before.
    if is_front
        && (others.is_empty() || understood.is_none())
        && let Some(script) = script
    {
        others.iter().for_each(|other| draft.omit(other, "the front controller has no conditions"));
        if place.below == "/" {
            return app.set("front_controller", text(&format!("/{script}")));
        }
        return omit(
            one,
            &[],
            "a front controller of a directory: write an app with `path`",
            draft,
        );
    }
    let is_positive = |one: &&Directive| is_missing(one) && !one.argument(1).starts_with('!');
    let status = status_of(&flags);
    let refuses = status.is_some_and(|status| (400..600).contains(&status));
    let understood = understood.filter(|all| !(refuses && all.iter().any(Condition::admits_more)));
    let Some(understood) = understood.filter(|_| !conditions.iter().any(is_positive)) else {
        if refuses && others.iter().any(|one| one.argument(1).starts_with('!')) {
            let anchored = anchored(pattern, place, flags.contains(&"NC".to_owned()));
            app.refuse(&anchored, false);
            return omit(
                one,
                conditions,
                "its paths are refused: write [app.NAME.condition.CONDITION] and `if`",
                draft,
            );
        }
        let reason =
            "left out, a condition has no translation: write [app.NAME.condition.CONDITION]";
        return omit(one, conditions, reason, draft);
    };
    let names: Vec<String> = understood.into_iter().map(|one| one.add_to(app)).collect();
    let anchored = anchored(pattern, place, flags.contains(&"NC".to_owned()));
    if !is_expressible(&anchored) {
        return omit(one, conditions, "the expression has look-around", draft);
    }
    let is_missing = !conditions.is_empty() && others.len() < conditions.len();
    if refuses {
        return app.with(names, |app| app.rewrite_when(&anchored, None, status, is_missing));
    }
    if to == "-" {
        return omit(one, conditions, "a rule that ends the others is not translated", draft);
    }
    let is_url = to.contains("://");
    let to =
        if is_url || to.starts_with('/') { to.to_owned() } else { format!("{}{to}", place.below) };
    if to.contains('?') && flags.contains(&"QSA".to_owned()) {
        draft.omit(one, "carried over, but the query string of the request is not appended");
    }
    let status = status.or(is_url.then_some(302));
    app.with(names, |app| app.rewrite_when(&anchored, Some(&to), status, is_missing));
}

fn has_flag(one: &Directive, flag: &str) -> bool {
    let flags = one.argument(2).trim_matches(['[', ']']);
    flags.split(',').any(|known| known.trim().eq_ignore_ascii_case(flag))
}

/// The conditions, of which all have to hold; with `[OR]` one of those that it joins. `None` if one of them has no
/// translation.
fn understood(all: &[&Directive], app: &mut App) -> Option<Vec<Condition>> {
    let mut whole = Vec::new();
    for group in all.split_inclusive(|one| !has_flag(one, "OR")) {
        let mut group = group.iter().map(|one| condition(one)).collect::<Option<Vec<_>>>()?;
        whole.push(match group.len() {
            1 => group.remove(0),
            _ => Condition::any(group, app)?,
        });
    }
    Some(whole)
}

/// `RewriteCond TEST PATTERN [FLAGS]`.
fn condition(one: &Directive) -> Option<Condition> {
    let variable = one.argument(0).strip_prefix("%{")?.strip_suffix('}')?;
    let (pattern, is_negated) = match one.argument(1).strip_prefix('!') {
        Some(pattern) => (pattern, true),
        None => (one.argument(1), false),
    };
    let (subject, pattern) = match variable.to_ascii_uppercase().as_str() {
        "HTTP_HOST" | "SERVER_NAME" => (Subject::Host, pattern.to_owned()),
        "HTTP_USER_AGENT" => (Subject::Header("User-Agent".to_owned()), pattern.to_owned()),
        "HTTP_REFERER" => (Subject::Header("Referer".to_owned()), pattern.to_owned()),
        "HTTP_COOKIE" => (Subject::Header("Cookie".to_owned()), pattern.to_owned()),
        "REMOTE_ADDR" => (Subject::Client, pattern.to_owned()),
        "REQUEST_METHOD" => (Subject::Method, pattern.to_owned()),
        "QUERY_STRING" => Subject::of_query(pattern)?,
        name => (
            Subject::Header(name.strip_prefix("HTTP:").map(|_| variable[5..].to_owned())?),
            pattern.to_owned(),
        ),
    };
    let ignores_case = has_flag(one, "NC");
    let test = match pattern.strip_prefix('=') {
        Some(text) if ignores_case => {
            Test::Matches { regex: format!("^{}$", regex::escape(text)), ignores_case }
        }
        Some(text) => Test::Is(text.to_owned()),
        None if pattern.starts_with(['<', '>', '-']) => return None,
        None => Test::Matches { regex: pattern, ignores_case },
    };
    Condition::new(&subject, &test, is_negated)
}

/// The expression of a rule, for the whole path.
fn anchored(pattern: &str, place: &Place<'_>, ignores_case: bool) -> String {
    let anchored = match pattern.strip_prefix('^') {
        // In a virtual host the group has the slash of the path: without it, what follows the host of a redirect would be
        // a part of its name.
        Some(rest) if !place.is_directory && rest.trim_start_matches('(').starts_with('.') => {
            pattern.to_owned()
        }
        Some(rest) => format!("^{}{}", place.below, rest.trim_start_matches('/')),
        // In a directory the path has no leading slash.
        None if place.is_directory && pattern.starts_with("(.") => {
            format!("^{}{pattern}", place.below)
        }
        None => pattern.to_owned(),
    };
    if ignores_case { format!("(?i){anchored}") } else { anchored }
}

/// The status that the flags of a rule name.
fn status_of(flags: &[String]) -> Option<i64> {
    flags.iter().find_map(|flag| match flag.as_str() {
        "F" => Some(403),
        "G" => Some(410),
        "R" => Some(302),
        other => other.strip_prefix("R=")?.parse().ok(),
    })
}

fn omit(one: &Directive, conditions: &[&Directive], reason: &str, draft: &mut Draft) {
    conditions.iter().for_each(|condition| draft.omit(condition, "its rule is not translated"));
    draft.omit(one, reason);
}
