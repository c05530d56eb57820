//! [`Draft`]: the configuration that a translator fills, and what it had to leave out.
//!
//! Invariant: text of the other server is inserted as a TOML value, never as TOML, and `${` in it is
//! escaped where Outboard expands values.

use crate::directive::Directive;
use crate::pattern::wider;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::{Table, Value};

/// A directive that was not carried over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omission {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The directive as written.
    pub directive: String,
    /// Why it was left out, or what to write instead.
    pub reason: String,
}

/// A configuration in progress.
#[derive(Debug, Default)]
pub struct Draft {
    /// Listeners by address.
    pub(crate) listeners: BTreeMap<String, Listener>,
    pub(crate) apps: Vec<App>,
    /// Hosts that are redirected to another one, with the statements that say so.
    pub(crate) redirected: Vec<(Directive, Redirected)>,
    /// Sites that only redirect: they get the root of the first site.
    pub(crate) redirects: Vec<App>,
    /// Keys of the top of the file.
    pub(crate) general: Table,
    omissions: Vec<Omission>,
}

/// An address.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    /// Certificate and key.
    pub(crate) certificates: Vec<(String, String)>,
    pub(crate) redirects: bool,
    /// Whether an app is served there, so that it cannot redirect everything.
    pub(crate) serves: bool,
    pub(crate) is_tls: bool,
    pub(crate) only_tls13: bool,
}

/// Hosts, and the scheme and host that their requests are redirected to.
#[derive(Debug)]
pub(crate) struct Redirected {
    pub(crate) hosts: Vec<String>,
    pub(crate) to: String,
    pub(crate) status: i64,
}

/// A site.
#[derive(Debug, Default)]
pub(crate) struct App {
    pub(crate) hosts: Vec<String>,
    pub(crate) keys: Table,
    /// Conditions of the rules that are added.
    pub(crate) only_if: Vec<String>,
    /// Whether they are for paths without a file only.
    pub(crate) only_missing: bool,
    /// Directories whose files are not listed, with the statements that say so.
    pub(crate) unlisted: Vec<(Directive, String)>,
}

impl Draft {
    pub(crate) fn omit(&mut self, directive: &Directive, reason: impl Into<String>) {
        self.omissions.push(Omission {
            file: directive.file.as_ref().clone(),
            line: directive.line,
            directive: directive.text(),
            reason: reason.into(),
        });
    }

    /// The text, and what was left out.
    pub(crate) fn finish(mut self) -> (String, Vec<Omission>) {
        let redirects = self.host_redirects();
        self.hide_listings();
        let mut root = std::mem::take(&mut self.general);
        let has_tls = self.listeners.values().any(|listener| !listener.certificates.is_empty());
        let listeners: Vec<Value> = self
            .listeners
            .into_iter()
            .filter(|(_, listener)| !listener.is_tls || !listener.certificates.is_empty())
            .map(|(address, listener)| Value::Table(listener.table(&address, has_tls)))
            .collect();
        if !listeners.is_empty() {
            root.insert("listen".to_owned(), Value::Array(listeners));
        }
        if !redirects.is_empty() {
            root.insert("redirect".to_owned(), Value::Array(redirects));
        }
        let mut apps = Table::new();
        let first_root = self.apps.first().and_then(|app| app.keys.get("root")).cloned();
        for mut app in self.redirects {
            if let Some(root) = &first_root {
                app.keys.insert("root".to_owned(), root.clone());
                app.keys.insert("front_controller".to_owned(), "none".into());
                self.apps.push(app);
            }
        }
        for app in self.apps {
            let name = free_name(&app, &apps);
            let mut keys = app.keys;
            if !app.hosts.is_empty() {
                keys.insert("hosts".to_owned(), strings(app.hosts));
            }
            apps.insert(name, Value::Table(keys));
        }
        root.insert("app".to_owned(), Value::Table(apps));
        let mut omissions = self.omissions;
        omissions.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        omissions.dedup();
        (toml::to_string_pretty(&root).unwrap_or_default(), omissions)
    }
}

impl Draft {
    /// `[[redirect]]` for each: a host has one app or redirect.
    fn host_redirects(&mut self) -> Vec<Value> {
        let apps = self.apps.iter().chain(&self.redirects);
        let mut taken: Vec<String> = apps.flat_map(|app| app.hosts.clone()).collect();
        let mut all = Vec::new();
        for (one, Redirected { hosts, to, status }) in std::mem::take(&mut self.redirected) {
            let target = to.split_once("://").map_or("", |(_, host)| host);
            let (free, others): (Vec<String>, Vec<String>) =
                hosts.into_iter().partition(|host| !taken.contains(host) && host != target);
            // The same redirect for another scheme.
            let is_known = |host: &String| {
                let is_same = |(hosts, known, _): &(Vec<String>, String, i64)| {
                    hosts.contains(host) && *known == to
                };
                host == target || all.iter().any(is_same)
            };
            if !others.iter().all(is_known) {
                self.omit(&one, "another site has these names");
            }
            if !free.is_empty() {
                taken.extend(free.clone());
                all.push((free, to, status));
            }
        }
        all.into_iter()
            .map(|(hosts, to, status)| {
                let mut table = Table::new();
                table.insert("hosts".to_owned(), strings(hosts));
                table.insert("to".to_owned(), Value::String(to));
                if status != 301 {
                    table.insert("status".to_owned(), status.into());
                }
                Value::Table(table)
            })
            .collect()
    }

    /// A listing has no exceptions: where one is needed, the files around it are not listed either.
    fn hide_listings(&mut self) {
        let mut omitted = Vec::new();
        for app in &mut self.apps {
            let unlisted = std::mem::take(&mut app.unlisted);
            let Some(Value::Table(files)) = app.keys.get_mut("static") else { continue };
            let Some(Value::Array(listed)) = files.get_mut("autoindex") else { continue };
            for (one, path) in unlisted {
                let covers = |pattern: &Value| {
                    let of = |pattern: &str| {
                        pattern != path && path.starts_with(pattern.trim_end_matches("**"))
                    };
                    pattern.as_str().is_some_and(of)
                };
                if listed.iter().any(covers) {
                    listed.retain(|pattern| !covers(pattern));
                    omitted.push(one);
                }
            }
            if listed.is_empty() {
                files.remove("autoindex");
            }
            if files.is_empty() {
                app.keys.remove("static");
            }
        }
        let reason = "files of the directories around it are not listed either: static.autoindex has no exceptions";
        omitted.iter().for_each(|one| self.omit(one, reason));
    }
}

impl Listener {
    fn table(self, address: &str, has_tls: bool) -> Table {
        let mut table = Table::new();
        table.insert("address".to_owned(), text(address));
        if self.redirects && !self.serves && has_tls && self.certificates.is_empty() {
            table.insert("redirect_to_https".to_owned(), true.into());
        }
        if self.only_tls13 && !self.certificates.is_empty() {
            table.insert("tls_minimum".to_owned(), text("1.3"));
        }
        let certificates: Vec<Value> = self
            .certificates
            .into_iter()
            .map(|(certificate, key)| {
                let pair = [
                    ("certificate".to_owned(), text(&certificate)),
                    ("key".to_owned(), text(&key)),
                ];
                Value::Table(Table::from_iter(pair))
            })
            .collect();
        if !certificates.is_empty() {
            table.insert("tls".to_owned(), Value::Array(certificates));
        }
        table
    }
}

impl App {
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.table_of(key).0.insert(key.rsplit('.').next().unwrap_or(key).to_owned(), value.into());
    }

    /// Adds an element to an array, once.
    pub(crate) fn push(&mut self, key: &str, value: impl Into<Value>) {
        let (table, last) = self.table_of(key);
        let array = table.entry(last).or_insert_with(|| Value::Array(Vec::new()));
        let value = value.into();
        if let Value::Array(array) = array
            && !array.contains(&value)
        {
            array.push(value);
        }
    }

    /// Sets a key below a table, whose name may contain dots.
    pub(crate) fn set_in(&mut self, tables: &str, name: &str, value: Value) {
        self.table_of(&format!("{tables}.x")).0.insert(name.to_owned(), value);
    }

    pub(crate) fn rewrite(&mut self, pattern: &str, to: Option<&str>, status: Option<i64>) {
        self.rewrite_when(pattern, to, status, false);
    }

    /// Refuses the paths that an expression matches, and all if it cannot be expressed. A front controller
    /// that a block before it serves stays open.
    pub(crate) fn refuse(&mut self, pattern: &str, but_front_controller: bool) {
        if but_front_controller {
            self.rewrite("^(/index\\.php(?:/.*)?)$", Some("$1"), None);
        }
        match wider(pattern) {
            Some(pattern) => self.rewrite(&pattern, None, Some(403)),
            None => self.push("deny", "/**"),
        }
    }

    /// With `missing` for paths that are neither a file nor a directory.
    pub(crate) fn rewrite_when(
        &mut self,
        pattern: &str,
        to: Option<&str>,
        status: Option<i64>,
        missing: bool,
    ) {
        let mut rule = Table::new();
        rule.insert("match".to_owned(), Value::String(pattern.to_owned()));
        if let Some(to) = to {
            rule.insert("to".to_owned(), Value::String(to.to_owned()));
        }
        if let Some(status) = status {
            rule.insert("status".to_owned(), status.into());
        }
        if missing || self.only_missing {
            rule.insert("when".to_owned(), "missing".into());
        }
        self.restrict(&mut rule);
        self.push("rewrite", Value::Table(rule));
    }

    /// A response with a text.
    pub(crate) fn respond(&mut self, pattern: &str, status: i64, body: &str) {
        let mut rule = Table::new();
        rule.insert("match".to_owned(), Value::String(pattern.to_owned()));
        rule.insert("status".to_owned(), status.into());
        rule.insert("body".to_owned(), Value::String(body.to_owned()));
        self.restrict(&mut rule);
        self.push("rewrite", Value::Table(rule));
    }

    /// A rule for response headers; not for errors, unless it is `always`.
    pub(crate) fn header(
        &mut self,
        (path, always): (Option<&str>, bool),
        action: &str,
        name: &str,
        value: &str,
    ) {
        let mut rule = Table::new();
        if let Some(path) = path {
            rule.insert("path".to_owned(), text(path));
        }
        let statuses: &[&str] =
            if always { &["2xx", "3xx", "4xx", "5xx"] } else { &["2xx", "3xx"] };
        // Without it a rule is for errors as well, but what lets caches store a response.
        if !always || ["cache-control", "expires"].contains(&name.to_ascii_lowercase().as_str()) {
            rule.insert("status".to_owned(), strings(statuses.iter().map(|one| (*one).to_owned())));
        }
        let what = match action {
            "remove" => strings([name.to_owned()]),
            _ => Value::Table(Table::from_iter([(name.to_owned(), text(value))])),
        };
        rule.insert(action.to_owned(), what);
        self.restrict(&mut rule);
        self.push("headers", Value::Table(rule));
    }

    fn table_of(&mut self, key: &str) -> (&mut Table, String) {
        let mut steps: Vec<&str> = key.split('.').collect();
        let last = steps.pop().unwrap_or_default().to_owned();
        let mut table = &mut self.keys;
        for step in steps {
            let inner = table.entry(step.to_owned()).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = inner else {
                unreachable!("`{step}` is only used as a table")
            };
            table = inner;
        }
        (table, last)
    }
}

/// A string of a value that Outboard expands.
pub(crate) fn text(text: &str) -> Value {
    Value::String(text.replace("${", "$${"))
}

pub(crate) fn strings(all: impl IntoIterator<Item = String>) -> Value {
    Value::Array(all.into_iter().map(|one| text(&one)).collect())
}

/// A name for the app from its first host.
fn free_name(app: &App, taken: &Table) -> String {
    let host = app.hosts.first().map_or("site", String::as_str);
    let host = host.trim_start_matches("*.").trim_start_matches("www.");
    let plain: String = host
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let base: String = plain.trim_matches('-').chars().take(40).collect();
    let base = if base.is_empty() { "site".to_owned() } else { base };
    let names = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}-{number}")));
    names.into_iter().find(|name| !taken.contains_key(name)).unwrap_or(base)
}
