//! `RewriteRule` with its conditions.

use super::section::Place;
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
    let others: Vec<&&Directive> = conditions.iter().filter(|one| !is_missing(one)).collect();
    if flags.iter().any(|flag| flag.starts_with("E=")) && to == "-" {
        // `Authorization` and such, which PHP has anyway.
        return;
    }
    if to.contains("%{") || pattern.starts_with('!') {
        return omit(one, conditions, "the rule has variables or a negated expression", draft);
    }
    let is_all = ["^", ".", ".*", "^(.*)$", "(.*)", "^.*$", "^(.+)$"].contains(&pattern);
    // A query with the path needs a rewrite; a path below the script is PATH_INFO.
    let refuses =
        flags.iter().any(|flag| ["F", "G"].contains(&flag.as_str()) || flag.starts_with('R'));
    let is_front =
        is_all && !refuses && !to.split_once('?').is_some_and(|(_, query)| query.contains('$'));
    let script = to.split(['?', '/']).find(|part| part.ends_with(".php"));
    // Conditions that only restrict a front controller leave more paths to 404 than before.
    if is_front && let Some(script) = script {
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
    if !others.is_empty() || conditions.iter().any(|one| !one.argument(1).starts_with('!')) {
        return omit(
            one,
            conditions,
            "conditions are not translated: see `when` of a rewrite",
            draft,
        );
    }
    let anchored = anchored(pattern, place, flags.contains(&"NC".to_owned()));
    if !is_expressible(&anchored) {
        return omit(one, conditions, "the expression has look-around", draft);
    }
    let status = status_of(&flags);
    if let Some(status) = status.filter(|status| (400..600).contains(status)) {
        return app.rewrite(&anchored, None, Some(status));
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
    app.rewrite_when(&anchored, Some(&to), status, !conditions.is_empty());
}

/// The expression of a rule, for the whole path.
fn anchored(pattern: &str, place: &Place<'_>, ignores_case: bool) -> String {
    let anchored = match pattern.strip_prefix('^') {
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
