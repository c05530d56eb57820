//! What requests have, and what rules require of it.
//!
//! The gateway decides once per request which conditions hold, in their order here: each needs only earlier ones.

use super::context::Context;
use super::peers::Peers;
use crate::diagnostic::Kind;
use crate::raw::{self, ConditionSet, If, Requirement};
use crate::scalar::{ConditionName, Fault, HostPattern, PathPattern, PlainText, REGEX_MAX_BYTES};
use regex::bytes::{Regex, RegexBuilder};
use std::collections::BTreeMap;

/// A condition. What is empty is not required; of the values of a field, a request has one.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Methods.
    pub methods: Vec<String>,
    /// Hosts.
    pub hosts: Vec<HostPattern>,
    /// Paths below the app's prefix.
    pub paths: Vec<PathPattern>,
    /// Header fields.
    pub headers: Vec<(String, Texts)>,
    /// Cookies.
    pub cookies: Vec<(String, Texts)>,
    /// Parameters of the query.
    pub query: Vec<(String, Texts)>,
    /// Networks of clients.
    pub clients: Option<Peers>,
    /// Countries of clients.
    pub countries: Vec<String>,
    /// Other conditions, all of them.
    pub all: Requirement,
    /// Other conditions, one of them.
    pub any: Vec<Requirement>,
}

/// Texts of which `*` stands for any characters.
#[derive(Clone, Debug)]
pub struct Texts(Regex);

impl Texts {
    /// Whether the whole text is one of them.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }

    fn new(values: &[PlainText], ignores_case: bool) -> Result<Self, Fault> {
        let one = |PlainText(text): &PlainText| {
            text.split('*').map(regex::escape).collect::<Vec<_>>().join("(?s-u:.)*")
        };
        let pattern = values.iter().map(one).collect::<Vec<_>>().join("|");
        RegexBuilder::new(&format!(r"\A(?:{pattern})\z"))
            .unicode(false)
            .case_insensitive(ignores_case)
            .size_limit(REGEX_MAX_BYTES)
            .build()
            .map(Self)
            .map_err(|_| Fault::new("the values are too long, or too many"))
    }
}

/// The conditions of an app, by name.
pub(super) struct Names {
    order: Vec<String>,
    /// Those that compare paths, or need one that does.
    of_paths: Vec<bool>,
}

impl Names {
    /// What the `if` of a rule requires.
    pub(super) fn requirement(
        &self,
        written: &If,
        place: &[&str],
        context: &mut Context<'_>,
    ) -> Requirement {
        let each = self.each(written, place, context).into_iter();
        each.fold(Requirement::default(), Requirement::and)
    }

    /// Whether what an `if` requires depends on the spelling of a path.
    pub(super) fn compare_paths(&self, written: &If) -> bool {
        let compares = |name: &ConditionName| self.compares_path(split(&name.0).0);
        written.as_slice().iter().any(compares)
    }

    fn compares_path(&self, name: &str) -> bool {
        let index = self.order.iter().position(|known| known == name);
        index.and_then(|index| self.of_paths.get(index)).is_some_and(|compares| *compares)
    }

    fn each(&self, written: &If, place: &[&str], context: &mut Context<'_>) -> Vec<Requirement> {
        let mut found = Vec::new();
        for ConditionName(text) in written.as_slice() {
            let (name, is_negated) = split(text);
            match self.order.iter().position(|known| known == name) {
                Some(index) => found.push(Requirement::one(index, is_negated)),
                None => {
                    let app = place.get(1).copied().unwrap_or("NAME");
                    let others = match self.order.is_empty() {
                        true => String::new(),
                        false => format!(", or write one of: {self}"),
                    };
                    let fault = Fault::new(format!("the app has no condition `{name}`"))
                        .hint(format!("add [app.{app}.condition.{name}]{others}"));
                    context.value(place, Kind::Conflict, fault);
                }
            }
        }
        found
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.order.join(", "))
    }
}

fn split(text: &str) -> (&str, bool) {
    text.strip_prefix('!').map_or((text, false), |name| (name, true))
}

/// The conditions of an app in the order of their evaluation. `place` is the app's.
pub(super) fn conditions(
    raw: &BTreeMap<String, raw::Condition>,
    place: &[&str],
    context: &mut Context<'_>,
) -> (Vec<Condition>, Names) {
    let at = [place, &["condition"]].concat();
    if raw.len() > ConditionSet::MAX {
        let fault = Fault::new(format!("an app has at most {} conditions", ConditionSet::MAX));
        context.key(&at, Kind::BadValue, fault);
        return (Vec::new(), Names { order: Vec::new(), of_paths: Vec::new() });
    }
    let mut names = Names { order: order(raw, &at, context), of_paths: Vec::new() };
    for name in &names.order {
        let one = &raw[name];
        let compares = !one.path.as_slice().is_empty()
            || names.compare_paths(&one.all)
            || names.compare_paths(&one.any);
        names.of_paths.push(compares);
    }
    let one = |name: &String| condition(&raw[name], &names, &[&at[..], &[name]].concat(), context);
    (names.order.iter().map(one).collect(), names)
}

/// The names so that each condition comes after those that it needs.
fn order(
    raw: &BTreeMap<String, raw::Condition>,
    place: &[&str],
    context: &mut Context<'_>,
) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    while order.len() < raw.len() {
        let is_ready = |condition: &raw::Condition| {
            let needed = condition.all.as_slice().iter().chain(condition.any.as_slice());
            needed.map(|name| split(&name.0).0).all(|name| {
                // An unknown one is reported with its place.
                !raw.contains_key(name) || order.iter().any(|known| known == name)
            })
        };
        let mut missing = raw.iter().filter(|(name, _)| !order.contains(name));
        match missing.clone().find(|(_, condition)| is_ready(condition)) {
            Some((name, _)) => order.push(name.clone()),
            None => {
                let (name, _) = missing.next().expect("one is missing");
                let fault = Fault::new(format!("the condition `{name}` needs itself"))
                    .hint("remove it from `if` or `any` of a condition that it needs");
                context.key(&[place, &[name]].concat(), Kind::Conflict, fault);
                return order;
            }
        }
    }
    order
}

fn condition(
    raw: &raw::Condition,
    names: &Names,
    place: &[&str],
    context: &mut Context<'_>,
) -> Condition {
    let clients = context.peers(&[place, &["client"]].concat(), raw.client.as_slice());
    let mut texts = |key, map: &BTreeMap<String, raw::OneOrMany<PlainText>>| {
        let mut all = Vec::new();
        for (name, values) in map {
            match Texts::new(values.as_slice(), key == "header") {
                Ok(texts) => all.push((name.clone(), texts)),
                Err(fault) => {
                    context.value(&[place, &[key, name]].concat(), Kind::BadValue, fault);
                }
            }
        }
        all
    };
    let condition = Condition {
        methods: raw.method.as_slice().iter().map(|name| name.0.clone()).collect(),
        hosts: raw.host.as_slice().to_vec(),
        paths: raw.path.as_slice().to_vec(),
        headers: texts("header", &raw.header),
        cookies: texts("cookie", &raw.cookie),
        query: texts("query", &raw.query),
        clients: (!clients.is_empty()).then(|| Peers::new(&clients)),
        countries: raw.country.as_slice().iter().map(|code| code.0.clone()).collect(),
        all: names.requirement(&raw.all, &[place, &["if"]].concat(), context),
        any: names.each(&raw.any, &[place, &["any"]].concat(), context),
    };
    if condition.is_empty() {
        let fault = Fault::new("the condition has no key").hint(
            "write what a request has, such as method = \"POST\" or cookie = { beta = \"1\" }",
        );
        context.key(place, Kind::Conflict, fault);
    }
    if !condition.countries.is_empty() && !context.places.wrote(&["country_database"]) {
        let fault = Fault::new("the countries of clients are not known")
            .hint("write country_database = \"GeoLite2-Country.mmdb\" at the top of the file");
        context.value(&[place, &["country"]].concat(), Kind::Conflict, fault);
    }
    condition
}

impl Condition {
    fn is_empty(&self) -> bool {
        self.methods.is_empty()
            && self.hosts.is_empty()
            && self.paths.is_empty()
            && [&self.headers, &self.cookies, &self.query].iter().all(|texts| texts.is_empty())
            && self.clients.is_none()
            && self.countries.is_empty()
            && self.all.is_empty()
            && self.any.is_empty()
    }
}

#[cfg(test)]
mod tests;
