//! [`Condition`]: what a request has to have, as both servers express it, and as `[app.NAME.condition.CONDITION]`.
//!
//! Built by the translators of `if` and `RewriteCond`. Invariant: a condition holds for the requests for which that of the
//! other server holds; where it can hold for more, it says so, and never refuses fewer clients by that.

use crate::access::network;
use crate::draft::{App, strings, text};
use crate::globs::globs;
use toml::{Table, Value};

/// What is compared.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    Header(String),
    Cookie(String),
    Query(String),
    Host,
    Method,
    Client,
}

impl Subject {
    /// `(^|&)name=value` as an expression for the whole query: the parameter, and the expression of its value.
    pub(crate) fn of_query(regex: &str) -> Option<(Self, String)> {
        let rest = regex.strip_prefix("(^|&)").or(regex.strip_prefix("(?:^|&)"))?;
        let (name, value) = rest.split_once('=')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let value = match value.strip_suffix("(&|$)") {
            Some(whole) => format!("^{whole}$"),
            None => format!("^{value}"),
        };
        let is_plain = !name.is_empty() && name.chars().all(is_name) && !value.contains('&');
        is_plain.then(|| (Self::Query(name.to_owned()), value))
    }
}

/// With what.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// That there is one.
    Any,
    Is(String),
    Matches {
        regex: String,
        ignores_case: bool,
    },
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    name: String,
    keys: Table,
    is_negated: bool,
    /// Whether it also holds for other cases of letters.
    is_wider: bool,
}

impl Condition {
    /// `None` if the test cannot be expressed.
    pub(crate) fn new(subject: &Subject, test: &Test, is_negated: bool) -> Option<Self> {
        let (values, is_wider) = values(subject, test)?;
        Some(Self { is_negated, is_wider, ..Self::of_values(subject, values) })
    }

    /// One of these texts, in which `*` stands for any characters.
    pub(crate) fn of_values(subject: &Subject, values: Vec<String>) -> Self {
        let array = strings(values);
        let of_map = |name: &str, key: &str| {
            let map = Table::from_iter([(name.to_owned(), array.clone())]);
            (key.to_owned(), Value::Table(map))
        };
        let (name, entry) = match subject {
            Subject::Header(name) => (name.clone(), of_map(name, "header")),
            Subject::Cookie(name) => (format!("cookie_{name}"), of_map(name, "cookie")),
            Subject::Query(name) => (format!("query_{name}"), of_map(name, "query")),
            Subject::Host => ("host".to_owned(), ("host".to_owned(), array.clone())),
            Subject::Method => ("method".to_owned(), ("method".to_owned(), array.clone())),
            Subject::Client => ("client".to_owned(), ("client".to_owned(), array.clone())),
        };
        let keys = Table::from_iter([entry]);
        Self { name: identifier(&name), keys, is_negated: false, is_wider: false }
    }

    /// That there is a value other than these: to the other servers, a field that is missing is an empty text.
    pub(crate) fn other_than(subject: &Subject, empty: &[&str], app: &mut App) -> Option<Self> {
        let has_values =
            matches!(subject, Subject::Header(_) | Subject::Cookie(_) | Subject::Query(_));
        let empty = Self::of_values(subject, empty.iter().map(|one| (*one).to_owned()).collect());
        has_values.then(|| {
            let any = Self::of_values(subject, vec!["*".to_owned()]);
            any.unless(Self { name: format!("{}_empty", empty.name), ..empty }, app)
        })
    }

    /// Clients of these networks.
    pub(crate) fn clients(networks: &[String], is_negated: bool) -> Option<Self> {
        let networks = networks.iter().map(|one| network(one)).collect::<Option<Vec<_>>>()?;
        let keys = Table::from_iter([("client".to_owned(), strings(networks))]);
        Some(Self { name: "client".to_owned(), keys, is_negated, is_wider: false })
    }

    /// One of them; none is negated.
    pub(crate) fn any(all: Vec<Self>, app: &mut App) -> Option<Self> {
        if all.iter().any(|one| one.is_negated) {
            return None;
        }
        let is_wider = all.iter().any(|one| one.is_wider);
        let names = all.into_iter().map(|one| one.add_to(app));
        let keys = Table::from_iter([(
            "any".to_owned(),
            Value::Array(names.map(Value::String).collect()),
        )]);
        Some(Self { name: "any".to_owned(), keys, is_negated: false, is_wider })
    }

    pub(crate) fn negated(mut self) -> Self {
        self.is_negated = !self.is_negated;
        self
    }

    /// The same for requests for which another one does not hold.
    pub(crate) fn unless(mut self, other: Self, app: &mut App) -> Self {
        let name = other.negated().add_to(app);
        self.keys.insert("if".to_owned(), Value::String(name));
        self
    }

    /// Whether a rule that refuses clients by it could admit some that the other server refuses.
    pub(crate) fn admits_more(&self) -> bool {
        self.is_negated && self.is_wider
    }

    /// Adds it to the app, and returns how rules refer to it.
    pub(crate) fn add_to(self, app: &mut App) -> String {
        let sign = if self.is_negated { "!" } else { "" };
        format!("{sign}{}", app.condition(&self.name, self.keys))
    }
}

/// The values that are compared, and whether more of them fit than before.
fn values(subject: &Subject, test: &Test) -> Option<(Vec<String>, bool)> {
    let has_letters = |all: &[String]| all.iter().any(|one| one.contains(char::is_alphabetic));
    let (found, ignores_case) = match test {
        Test::Any => (vec!["*".to_owned()], true),
        Test::Is(text) if text.contains('*') || text.is_empty() => return None,
        Test::Is(text) => (vec![text.clone()], false),
        Test::Matches { regex, ignores_case } => {
            let regex = match subject {
                // An unescaped dot is meant as one, and other characters are in no host that is served.
                Subject::Host => {
                    regex.trim_end_matches("(:[0-9]+)?$").replace("\\.", ".").replace('.', "\\.")
                }
                _ => regex.clone(),
            };
            let found = globs(&regex)?;
            // A field that is missing is an empty text to the other servers.
            if found.iter().any(|one| one.bytes().all(|byte| byte == b'*')) {
                return None;
            }
            (found, *ignores_case || regex.starts_with("(?i)"))
        }
    };
    match subject {
        Subject::Header(_) => Some((found.clone(), !ignores_case && has_letters(&found))),
        Subject::Cookie(_) | Subject::Query(_) => {
            let is_narrower = ignores_case && has_letters(&found);
            (!is_narrower).then_some((found, false))
        }
        Subject::Host => {
            let is_host = |name: &String| {
                !name.is_empty()
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            };
            found.iter().all(is_host).then_some((found, false))
        }
        Subject::Method => {
            // No method is a part of another one.
            let names = found.iter().map(|name| name.trim_matches('*').to_ascii_uppercase());
            let names: Vec<String> = names.collect();
            let is_name = |name: &String| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase())
            };
            names.iter().all(is_name).then_some((names, false))
        }
        Subject::Client => {
            let one = |glob: &String| match glob.strip_suffix('*') {
                Some(first) if first.ends_with('.') => network(first),
                Some(_) => None,
                None => network(glob),
            };
            Some((found.iter().map(one).collect::<Option<Vec<_>>>()?, false))
        }
    }
}

/// A name of a condition.
fn identifier(text: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    text.chars().map(fits).take(40).collect()
}

/// A condition that other rules of the app refer to as well.
impl App {
    /// The name of the condition with these keys.
    fn condition(&mut self, name: &str, keys: Table) -> String {
        let known =
            self.keys.get("condition").and_then(Value::as_table).cloned().unwrap_or_default();
        let keys = Value::Table(keys);
        if let Some((name, _)) = known.iter().find(|(_, other)| **other == keys) {
            return name.clone();
        }
        let names =
            std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}_{number}")));
        let name = names.into_iter().find(|name| !known.contains_key(name)).unwrap_or_default();
        self.set_in("condition", &name, keys);
        name
    }

    /// Translates what only holds for requests with these conditions.
    pub(crate) fn with(&mut self, conditions: Vec<String>, translate: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.only_if, conditions);
        translate(self);
        self.only_if = outer;
    }

    /// Adds the conditions to a rule.
    pub(crate) fn restrict(&self, rule: &mut Table) {
        match self.only_if.as_slice() {
            [] => {}
            [one] => drop(rule.insert("if".to_owned(), text(one))),
            all => drop(rule.insert("if".to_owned(), strings(all.iter().cloned()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(subject: Subject, regex: &str, ignores_case: bool) -> Option<(Vec<String>, bool)> {
        values(&subject, &Test::Matches { regex: regex.to_owned(), ignores_case })
    }

    fn is(all: &[&str], is_wider: bool) -> Option<(Vec<String>, bool)> {
        Some((all.iter().map(|one| (*one).to_owned()).collect(), is_wider))
    }

    #[test]
    fn values_are_those_of_the_other_server_or_more() {
        let agent = || Subject::Header("User-Agent".to_owned());
        assert_eq!(of(agent(), "bot|crawl", true), is(&["*bot*", "*crawl*"], false));
        assert_eq!(of(agent(), "^$", false), None, "a missing field is empty, too");
        assert_eq!(of(agent(), "Bot", false), is(&["*Bot*"], true));
        assert_eq!(of(agent(), "[0-9]", false), None);
        let cookie = || Subject::Cookie("a".to_owned());
        assert_eq!(of(cookie(), "^x", false), is(&["x*"], false));
        assert_eq!(of(cookie(), "^x", true), None, "it would hold for fewer");
        assert_eq!(
            of(Subject::Host, "^(www\\.)?a.test$", true),
            is(&["www.a.test", "a.test"], false)
        );
        assert_eq!(of(Subject::Host, "^www\\.", true), None);
        assert_eq!(of(Subject::Method, "^TRAC[EK]", false), is(&["TRACE", "TRACK"], false));
        assert_eq!(of(Subject::Client, "^10\\.1\\.", false), is(&["10.1.0.0/16"], false));
        assert_eq!(of(Subject::Client, "^10\\.1", false), None);
        assert_eq!(of(Subject::Client, "^127\\.0\\.0\\.1$", false), is(&["127.0.0.1"], false));
    }
}
