//! Scenario files: what users do, step by step, in TOML.
//!
//! Read once by the command line; gives the [`Script`]s and [`Feed`]s of a plan. All errors of a
//! file are reported before the first request, with their place.
//!
//! ```toml
//! [[feed]]                      # columns become {user} and {password}
//! file = "users.csv"
//! order = "random"
//!
//! [[scenario]]
//! name = "log in"
//! weight = 1
//!
//! [[scenario.step]]
//! request = "GET /login"
//! capture = { token = 'name="token" value="([^"]+)"' }
//! think = "100ms..2s"
//!
//! [[scenario.step]]
//! request = "POST /login"
//! form = { user = "{user}", password = "{password}", token = "{token}" }
//! check = { status = 302 }
//! ```

use crate::plan::{Capture, Expect, Feed, Plan, Request, Script, Step};
use crate::template::Template;
use outboard_profile::duration::parse as parse_duration;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs};

/// Why a scenario file is invalid, with file and place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidScenario(String);

impl fmt::Display for InvalidScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidScenario {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    feed: Vec<RawFeed>,
    scenario: Vec<RawScript>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFeed {
    file: PathBuf,
    #[serde(default)]
    order: Order,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Sequential,
    Random,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    name: String,
    #[serde(default = "one")]
    weight: u32,
    step: Vec<RawStep>,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    request: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    form: Option<BTreeMap<String, String>>,
    think: Option<String>,
    #[serde(default)]
    check: RawCheck,
    #[serde(default)]
    capture: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCheck {
    status: Option<u16>,
    length: Option<u64>,
    body: Option<String>,
}

impl Plan {
    /// Replaces the target's one request by the scripts of a scenario file.
    pub fn load_scenario(&mut self, path: &Path) -> Result<(), InvalidScenario> {
        let fail = |why: String| InvalidScenario(format!("{}: {why}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let raw: RawFile = toml::from_str(&text).map_err(|error| fail(error.to_string()))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let feeds: Result<Vec<Feed>, String> =
            raw.feed.iter().map(|feed| feed.read(directory)).collect();
        let feeds = feeds.map_err(fail)?;
        let scripts: Result<Vec<Script>, String> =
            raw.scenario.iter().map(RawScript::script).collect();
        let scripts = scripts.map_err(fail)?;
        scripts.iter().try_for_each(|script| check_values(script, &feeds)).map_err(fail)?;
        self.feeds = feeds;
        self.scripts = scripts;
        Ok(())
    }
}

impl RawFeed {
    fn read(&self, directory: &Path) -> Result<Feed, String> {
        let path = directory.join(&self.file);
        let fail = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| fail(&error))?;
        let mut rows = parse_csv(&text);
        if rows.len() < 2 {
            return Err(fail(&"a line of column names and at least one row are needed"));
        }
        let columns = rows.remove(0);
        if let Some(at) = rows.iter().position(|row| row.len() != columns.len()) {
            let (found, expected) = (rows[at].len(), columns.len());
            return Err(fail(&format!("row {} has {found} values and not {expected}", at + 2)));
        }
        Ok(Feed { columns, rows, random: self.order == Order::Random })
    }
}

impl RawScript {
    fn script(&self) -> Result<Script, String> {
        let steps = self.step.iter().enumerate().map(|(at, step)| {
            step.step().map_err(|why| format!("scenario {:?}, step {}: {why}", self.name, at + 1))
        });
        let steps = steps.collect::<Result<_, String>>()?;
        Ok(Script { name: self.name.clone(), weight: self.weight, steps })
    }
}

impl RawStep {
    fn step(&self) -> Result<Step, String> {
        let (method, path) = self
            .request
            .split_once(' ')
            .ok_or_else(|| format!("request {:?} is not METHOD /PATH", self.request))?;
        let template = |text: &str| Template::parse(text).map_err(|error| error.to_string());
        let headers = self.headers.iter().map(|(name, value)| Ok((name.clone(), template(value)?)));
        let mut headers = headers.collect::<Result<Vec<_>, String>>()?;
        let body = match (&self.body, &self.form) {
            (Some(_), Some(_)) => return Err("body and form exclude each other".to_owned()),
            (Some(body), None) => template(body)?,
            (None, Some(form)) => {
                let kind = Template::literal("application/x-www-form-urlencoded");
                headers.push(("Content-Type".to_owned(), kind));
                form_body(form)?
            }
            (None, None) => Template::default(),
        };
        let request = Request {
            method: method.to_ascii_uppercase(),
            path: template(path.trim())?.with_encoded_values(),
            headers,
            body,
        };
        let expect = Expect {
            status: self.check.status,
            length_bytes: self.check.length,
            body_contains: self.check.body.clone(),
            ..Expect::default()
        };
        let captures = self.capture.iter().map(|(name, pattern)| {
            let pattern = regex::bytes::Regex::new(pattern)
                .map_err(|error| format!("capture {name}: {error}"))?;
            Ok(Capture { name: name.clone(), pattern })
        });
        let captures = captures.collect::<Result<_, String>>()?;
        let think = self.think.as_deref().map_or(Ok((Duration::ZERO, Duration::ZERO)), think)?;
        Ok(Step { request, expect, captures, think })
    }
}

/// `name=value&…`, percent-encoded.
fn form_body(form: &BTreeMap<String, String>) -> Result<Template, String> {
    let mut body = Template::default();
    for (name, value) in form {
        let separator = if body == Template::default() { "" } else { "&" };
        body.append(Template::literal(separator));
        body.append(Template::literal(name.as_str()).with_encoded_text());
        body.append(Template::literal("="));
        let value = Template::parse(value).map_err(|error| error.to_string())?;
        body.append(value.with_encoded_text().with_encoded_values());
    }
    Ok(body)
}

/// Every placeholder must be filled by a feed or by an earlier step.
fn check_values(script: &Script, feeds: &[Feed]) -> Result<(), String> {
    let mut known: Vec<&str> =
        feeds.iter().flat_map(|feed| &feed.columns).map(String::as_str).collect();
    for (at, step) in script.steps.iter().enumerate() {
        let mut values = step.request.templates().flat_map(Template::values);
        if let Some(unknown) = values.find(|value| !known.contains(value)) {
            return Err(format!(
                "scenario {:?}, step {}: no feed and no step before gives {{{unknown}}}",
                script.name,
                at + 1
            ));
        }
        known.extend(step.captures.iter().map(|capture| capture.name.as_str()));
    }
    Ok(())
}

/// Parses `100ms` or `100ms..2s`.
fn think(text: &str) -> Result<(Duration, Duration), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let (least, most) = (parse_duration(least.trim())?, parse_duration(most.trim())?);
    if least > most {
        return Err(format!("think {text:?}: the first time is the shorter one"));
    }
    Ok((least, most))
}

/// Rows of values (RFC 4180): in double quotes, commas and line ends are text, and two double
/// quotes are one. Empty lines are skipped.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let (mut row, mut value) = (Vec::new(), String::new());
    let mut is_quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                value.push('"');
            }
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => value.push(letter),
            ',' => row.push(std::mem::take(&mut value)),
            '\n' if row.is_empty() && value.is_empty() => {}
            '\n' => {
                row.push(std::mem::take(&mut value));
                rows.push(std::mem::take(&mut row));
            }
            '\r' => {}
            _ => value.push(letter),
        }
    }
    if !row.is_empty() || !value.is_empty() {
        row.push(value);
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests;
