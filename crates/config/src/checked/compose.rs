//! Pages that are put together from parts, and what is fetched before a script runs.

use super::{Context, Mode};
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, FilePath, HeaderValue, PathPattern, UrlTemplate};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A page that is put together from parts.
#[derive(Clone, Debug)]
pub struct Compose {
    /// The paths that are answered so.
    pub path: PathPattern,
    /// The parts, in the order in which they are sent; at least one.
    pub parts: Vec<Part>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is made of.
    pub source: PartSource,
    /// How long it may take.
    pub timeout_ms: u64,
    /// What happens when it fails.
    pub on_error: OnError,
    /// Whether it begins only when all before it have been sent.
    pub sequential: bool,
}

/// What a part is made of.
#[derive(Clone, Debug)]
pub enum PartSource {
    /// A script of the app.
    Script {
        /// Its URL path below the app's prefix.
        path: String,
        /// A query instead of the request's.
        query: Option<String>,
    },
    /// An upstream's answer.
    Fetch(FetchSource),
    /// A file: its URL path below the app's prefix.
    File(String),
    /// Text as it is.
    Text(String),
}

/// What to fetch.
#[derive(Clone, Debug)]
pub struct FetchSource {
    /// From where.
    pub url: UrlTemplate,
    /// Headers that are sent.
    pub headers: Vec<(String, String)>,
    /// The largest body.
    pub max_body_bytes: u64,
}

/// What happens when a part fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnError {
    /// This is sent instead; nothing, when it is to be skipped.
    Replace(String),
    /// The answer fails.
    Fail,
}

/// Something that is fetched before a script runs.
#[derive(Clone, Debug)]
pub struct Prefetch {
    /// The paths whose scripts get it.
    pub path: PathPattern,
    /// The name of its body among the request's parameters: `OUTBOARD_PREFETCH_…`.
    pub param: String,
    /// What to fetch.
    pub source: FetchSource,
    /// How long it may take.
    pub timeout_ms: u64,
}

/// Requests to other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Requests that may be under way to one host.
    pub requests: u32,
    /// Answers of one host that may be coming beside these.
    pub responses: u32,
    /// Requests that may wait for one of these to end.
    pub queue_length: u32,
    /// How long they wait.
    pub queue_timeout_ms: u64,
    /// Requests of one app that may be under way or wait.
    pub requests_per_app: u32,
    /// Connections to all hosts.
    pub connections: u32,
    /// Idle connections that are kept to one host.
    pub idle_connections: u32,
    /// How long they are kept.
    pub idle_timeout_ms: u64,
    /// Certificate authorities that are trusted beside the system's; absolute, exists.
    pub ca_file: Option<PathBuf>,
}

pub(super) fn upstream(raw: &raw::Upstream, context: &mut Context<'_>) -> Upstream {
    Upstream {
        requests: raw.requests,
        responses: raw.responses,
        queue_length: raw.queue_length,
        queue_timeout_ms: raw.queue_timeout.0,
        requests_per_app: raw.requests_per_app,
        connections: raw.connections,
        idle_connections: raw.idle_connections,
        idle_timeout_ms: raw.idle_timeout.0,
        ca_file: raw.ca.as_ref().map(|path| context.file(&["upstream", "ca"], path)),
    }
}

/// `place` is the app's.
pub(super) fn compose(
    raw: &raw::App,
    root: &Path,
    mode: &Mode,
    place: &[&str],
    context: &mut Context<'_>,
) -> Vec<Compose> {
    let mut pages = Vec::new();
    for (index, page) in raw.compose.iter().enumerate() {
        let index = index.to_string();
        let place = [place, &["compose", &index, "part"]].concat();
        if page.part.is_empty() {
            context.key(&place, Kind::MissingKey, Fault::new("the page has no parts"));
        }
        check_first_script(&page.part, &place, context);
        let app = Surroundings { root, mode };
        let parts = page.part.iter().enumerate().filter_map(|(index, raw)| {
            part(raw, &app, &[&place[..], &[index.to_string().as_str()]].concat(), context)
        });
        pages.push(Compose { path: page.path.clone(), parts: parts.collect() });
    }
    pages
}

/// The first script has the page's status and headers, so nothing can be sent before it answers.
fn check_first_script(parts: &[raw::Part], place: &[&str], context: &mut Context<'_>) {
    let Some(first) = parts.iter().position(|part| part.script.is_some()) else { return };
    if let Some(at) = parts[..=first].iter().position(|part| part.sequential) {
        let fault = Fault::new("the first script cannot wait for what is sent before it")
            .hint("it has the page's status and headers; take `sequential` out");
        context.value(
            &[place, &[at.to_string().as_str(), "sequential"]].concat(),
            Kind::Conflict,
            fault,
        );
    }
}

/// What a part can lead to.
struct Surroundings<'a> {
    root: &'a Path,
    mode: &'a Mode,
}

fn part(
    raw: &raw::Part,
    app: &Surroundings<'_>,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<Part> {
    let source = source(raw, app, place, context)?;
    let is_fetch = matches!(source, PartSource::Fetch(_));
    if !is_fetch && !raw.headers.is_empty() {
        let fault = Fault::new("`headers` are those of a `fetch`").hint("take them out");
        context.key(&[place, &["headers"]].concat(), Kind::Conflict, fault);
    }
    Some(Part {
        source,
        timeout_ms: raw.timeout.0,
        on_error: on_error(raw, place, context),
        sequential: raw.sequential,
    })
}

fn source(
    raw: &raw::Part,
    app: &Surroundings<'_>,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<PartSource> {
    let at = |key: &'static str| [place, &[key]].concat();
    let source = match (&raw.script, &raw.fetch, &raw.file, &raw.text) {
        (Some(script), None, None, None) => {
            let (path, query) = match script.0.split_once('?') {
                Some((path, query)) => (path, Some(query.to_owned())),
                None => (script.0.as_str(), None),
            };
            // In worker mode the script that stays makes of the path what it wants.
            let exists = *app.mode == Mode::Classic;
            check_below_root(path, app.root, exists, &at("script"), context);
            PartSource::Script { path: path.to_owned(), query }
        }
        (None, Some(url), None, None) => {
            PartSource::Fetch(fetch(url, &raw.headers, raw.max_body.0))
        }
        (None, None, Some(file), None) => {
            check_below_root(&file.0, app.root, true, &at("file"), context);
            PartSource::File(file.0.clone())
        }
        (None, None, None, Some(text)) => PartSource::Text(text.0.clone()),
        (None, None, None, None) => {
            let fault = Fault::new("the part is made of nothing")
                .hint("it is one of `script`, `fetch`, `file` and `text`");
            context.key(place, Kind::MissingKey, fault);
            return None;
        }
        _ => {
            let fault = Fault::new("the part is made of several things")
                .hint("one of `script`, `fetch`, `file` and `text`; make a part of each");
            context.key(place, Kind::Conflict, fault);
            return None;
        }
    };
    Some(source)
}

fn check_below_root(
    path: &str,
    root: &Path,
    exists: bool,
    place: &[&str],
    context: &mut Context<'_>,
) {
    if !path.starts_with('/') || path.split('/').any(|segment| segment == "..") {
        let fault = Fault::new(format!("`{path}` is no path below the root"))
            .hint("it starts with a slash, as in a URL, and has no `..`");
        return context.value(place, Kind::BadValue, fault);
    }
    // Of a root that is missing that alone is told.
    if exists && context.disk.look(root).is_ok() {
        let file = root.join(path.trim_start_matches('/'));
        context.look_for_file(place, &FilePath(path.to_owned()), &file);
    }
}

fn on_error(raw: &raw::Part, place: &[&str], context: &mut Context<'_>) -> OnError {
    let at = |key: &'static str| [place, &[key]].concat();
    match (raw.on_error, &raw.fallback) {
        (None | Some(raw::OnError::Fallback), Some(text)) => OnError::Replace(text.0.clone()),
        (Some(raw::OnError::Skip), None) => OnError::Replace(String::new()),
        (None | Some(raw::OnError::Fail), None) => OnError::Fail,
        (Some(raw::OnError::Fallback), None) => {
            let fault = Fault::new("there is no `fallback`").hint("fallback = \"<p>…</p>\"");
            context.value(&at("on_error"), Kind::Conflict, fault);
            OnError::Fail
        }
        (Some(raw::OnError::Skip | raw::OnError::Fail), Some(_)) => {
            let fault = Fault::new("the `fallback` would never be sent")
                .hint("take it out, or write on_error = \"fallback\"");
            context.value(&at("on_error"), Kind::Conflict, fault);
            OnError::Fail
        }
    }
}

fn fetch(
    url: &UrlTemplate,
    headers: &BTreeMap<String, HeaderValue>,
    max_body_bytes: u64,
) -> FetchSource {
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
    FetchSource { url: url.clone(), headers, max_body_bytes }
}

pub(super) fn prefetch(raw: &raw::App, place: &[&str], context: &mut Context<'_>) -> Vec<Prefetch> {
    let mut all: Vec<Prefetch> = Vec::new();
    for (index, one) in raw.prefetch.iter().enumerate() {
        let param = format!("OUTBOARD_PREFETCH_{}", one.name.0.to_ascii_uppercase());
        let twice =
            |other: &Prefetch| other.param == param && other.path.as_str() == one.path.as_str();
        if all.iter().any(twice) {
            let fault = Fault::new(format!("there are two of the name `{}`", one.name.0));
            let index = index.to_string();
            let place = [place, &["prefetch", &index, "name"]].concat();
            context.value(&place, Kind::Conflict, fault);
        }
        all.push(Prefetch {
            path: one.path.clone(),
            param,
            source: fetch(&one.fetch, &one.headers, one.max_body.0),
            timeout_ms: one.timeout.0,
        });
    }
    all
}
