//! Composed pages, and upstream requests sent before a script runs.

use super::{Context, Mode};
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, FilePath, HeaderValue, PathPattern, UrlTemplate};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A page composed of parts.
#[derive(Clone, Debug)]
pub struct Compose {
    /// Paths of the composed pages.
    pub path: PathPattern,
    /// The parts, in the order in which they are sent; at least one.
    pub parts: Vec<Part>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its source.
    pub source: PartSource,
    /// Maximum time for the part.
    pub timeout_ms: u64,
    /// Behaviour if it fails.
    pub on_error: OnError,
    /// Whether it starts only after all parts before it have been sent.
    pub sequential: bool,
}

/// The source of a part.
#[derive(Clone, Debug)]
pub enum PartSource {
    /// A script of the app.
    Script {
        /// Its URL path below the app's prefix.
        path: String,
        /// A query instead of the request's.
        query: Option<String>,
    },
    /// An upstream response.
    Fetch(FetchSource),
    /// A file: its URL path below the app's prefix.
    File(String),
    /// Literal text.
    Text(String),
}

/// An upstream request.
#[derive(Clone, Debug)]
pub struct FetchSource {
    /// Its URL.
    pub url: UrlTemplate,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Maximum size of the response body.
    pub max_body_bytes: u64,
}

/// Behaviour if a part fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Sends this text instead; empty to leave the part out.
    Replace(String),
    /// Fails the response.
    Fail,
}

/// An upstream request that is sent before a script runs.
#[derive(Clone, Debug)]
pub struct Prefetch {
    /// Paths whose scripts receive the result.
    pub path: PathPattern,
    /// Name of the entry in `$_SERVER` with the body: `OUTBOARD_PREFETCH_…`.
    pub param: String,
    /// The request.
    pub source: FetchSource,
    /// Maximum time for the request.
    pub timeout_ms: u64,
}

/// Requests to other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Maximum concurrent requests per host.
    pub requests: u32,
    /// Maximum responses per host that are being received in addition to these.
    pub responses: u32,
    /// Maximum number of requests waiting per host.
    pub queue_length: u32,
    /// Maximum time a request waits in this queue.
    pub queue_timeout_ms: u64,
    /// Maximum concurrent and waiting requests of one app.
    pub requests_per_app: u32,
    /// Maximum connections to all hosts.
    pub connections: u32,
    /// Maximum idle connections per host.
    pub idle_connections: u32,
    /// Maximum idle time of a connection.
    pub idle_timeout_ms: u64,
    /// Certificate authorities to trust in addition to those of the system; absolute, exists.
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

/// The first script sets the page's status and headers, so nothing can be sent before it responds.
fn check_first_script(parts: &[raw::Part], place: &[&str], context: &mut Context<'_>) {
    let Some(first) = parts.iter().position(|part| part.script.is_some()) else { return };
    if let Some(at) = parts[..=first].iter().position(|part| part.sequential) {
        let fault = Fault::new("the first script cannot be sequential")
            .hint("it sets the page's status and headers; remove `sequential`");
        context.value(
            &[place, &[at.to_string().as_str(), "sequential"]].concat(),
            Kind::Conflict,
            fault,
        );
    }
}

/// What validating a part needs to know about its app.
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
        let fault = Fault::new("`headers` needs a `fetch`").hint("remove it");
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
            // In worker mode the worker script interprets the path.
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
            let fault = Fault::new("the part has no source")
                .hint("add one of `script`, `fetch`, `file` and `text`");
            context.key(place, Kind::MissingKey, fault);
            return None;
        }
        _ => {
            let fault = Fault::new("the part has several sources")
                .hint("write a part for each of `script`, `fetch`, `file` and `text`");
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
        let fault = Fault::new(format!("`{path}` is not a path below the root"))
            .hint("it must start with a slash and must not contain `..`");
        return context.value(place, Kind::BadValue, fault);
    }
    // If the root is missing, report only that.
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
            let fault = Fault::new("`fallback` is missing").hint("add fallback = \"<p>…</p>\"");
            context.value(&at("on_error"), Kind::Conflict, fault);
            OnError::Fail
        }
        (Some(raw::OnError::Skip | raw::OnError::Fail), Some(_)) => {
            let fault = Fault::new("the `fallback` would never be sent")
                .hint("remove it, or write on_error =  \"fallback\"");
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
            let fault = Fault::new(format!("two entries are named `{}`", one.name.0));
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
