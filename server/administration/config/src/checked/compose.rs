//! Composed pages, and upstream requests sent before a script runs.

use super::context::Context;
use super::worker::Mode;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, HeaderValue, PathPattern, UrlTemplate};
use std::collections::BTreeMap;
use std::path::Path;

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
        context.look_for_file(place, path.as_ref(), &file);
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

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, site};
    use crate::*;

    fn page(parts: &str) -> String {
        format!("[[app.site.compose]]\npath = \"/page\"\npart = [{parts}]\n")
    }

    #[test]
    fn a_part_has_one_source() {
        let app = site(&page("{ script = \"/a.php?x=1\" }, { text = \"b\" }"));
        let [script, text] = &app.compose[0].parts[..] else { panic!("{:?}", app.compose) };
        let PartSource::Script { path, query } = &script.source else { panic!("{script:?}") };
        assert_eq!((path.as_str(), query.as_deref()), ("/a.php", Some("x=1")));
        assert!(matches!(&text.source, PartSource::Text(text) if text == "b"));
        for (parts, kind, words) in [
            ("", Kind::MissingKey, "no parts"),
            ("{}", Kind::MissingKey, "no source"),
            ("{ text = \"a\", file = \"/b.html\" }", Kind::Conflict, "several sources"),
            ("{ script = \"a.php\" }", Kind::BadValue, "not a path below the root"),
            ("{ script = \"/a.php\", sequential = true }", Kind::Conflict, "first script"),
            ("{ text = \"a\", headers = { A = \"b\" } }", Kind::Conflict, "needs a `fetch`"),
        ] {
            assert_error(&format!("{APP}{}", page(parts)), kind, 5, words);
        }
    }

    #[test]
    fn a_part_that_fails_is_replaced_left_out_or_fatal() {
        let on_error = |keys: &str| {
            let part = format!("{{ text = \"a\"{keys} }}");
            site(&page(&part)).compose[0].parts[0].on_error.clone()
        };
        assert_eq!(on_error(""), OnError::Fail);
        assert_eq!(on_error(", fallback = \"b\""), OnError::Replace("b".to_owned()));
        assert_eq!(on_error(", on_error = \"skip\""), OnError::Replace(String::new()));
        for (keys, words) in [
            ("on_error = \"fallback\"", "`fallback` is missing"),
            ("on_error = \"skip\", fallback = \"b\"", "never be sent"),
        ] {
            let text = format!("{APP}{}", page(&format!("{{ text = \"a\", {keys} }}")));
            assert_error(&text, Kind::Conflict, 5, words);
        }
    }

    #[test]
    fn a_name_of_a_prefetch_is_used_once_for_a_path() {
        let entry =
            "[[app.site.prefetch]]\npath = \"/a\"\nname = \"Data\"\nfetch = \"http://b/\"\n";
        assert_eq!(site(entry).prefetch[0].param, "OUTBOARD_PREFETCH_DATA");
        let text = format!("{APP}{entry}{entry}");
        assert_error(&text, Kind::Conflict, 9, "two entries are named `Data`");
    }
}
