//! `location` blocks: what they mean for the paths of a site.
//!
//! Invariant: a block that refuses requests is translated to a rule that refuses at least those, or it is
//! listed.

use super::condition::Place;
use super::surroundings::Surroundings;
use super::{access, condition, server, upstream};
use crate::directive::Directive;
use crate::draft::{App, Draft, text};
use crate::pattern::{extensions, is_expressible, matches_front_controller};
use toml::{Table, Value};

/// The paths of a block.
enum Paths {
    Prefix(String),
    Exact(String),
    Matching(String),
}

impl Paths {
    fn of(location: &Directive) -> Paths {
        let path = location.argument(1).to_owned();
        match location.argument(0) {
            "=" => Paths::Exact(path),
            "~" => Paths::Matching(path),
            "~*" => Paths::Matching(format!("(?i){path}")),
            "^~" => Paths::Prefix(path),
            prefix => Paths::Prefix(prefix.to_owned()),
        }
    }

    /// As path patterns; `None` if there is no such pattern.
    fn patterns(&self) -> Option<Vec<String>> {
        match self {
            Paths::Exact(path) => Some(vec![path.clone()]),
            Paths::Prefix(path) => Some(vec![format!("{path}**")]),
            Paths::Matching(regex) => {
                Some(extensions(regex)?.into_iter().map(|one| format!("*.{one}")).collect())
            }
        }
    }

    fn regex(&self) -> String {
        match self {
            Paths::Exact(path) => format!("^{}$", regex::escape(path)),
            Paths::Prefix(path) => format!("^{}", regex::escape(path)),
            Paths::Matching(regex) => regex.clone(),
        }
    }

    /// The expression of a rewrite that holds within the block; `None` if there is none.
    fn rewriting(&self, written: &str, to: &str) -> Option<String> {
        let has_groups = to.contains('$');
        let is_all = ["^", ".", ".*", "^.*", "^.*$", "^.+$", "/"].contains(&written);
        let (start, end) = match written {
            "^(.*)$" | "^(.*)" | "(.*)" | "^(.+)$" => ("^(", 0),
            "^/(.*)$" | "^/(.*)" | "/(.*)" | "^/(.+)$" => ("^/(", 1),
            _ => ("", 0),
        };
        match self {
            _ if self.is_everything() => Some(written.to_owned()),
            _ if is_all && !has_groups => Some(self.regex()),
            Paths::Exact(path) if !start.is_empty() => {
                Some(format!("{start}{})$", regex::escape(path.get(end..)?)))
            }
            Paths::Prefix(path) if !start.is_empty() => {
                Some(format!("{start}{}.*)$", regex::escape(path.get(end..)?)))
            }
            Paths::Matching(regex) if regex.starts_with('^') && !regex.contains(['|', '$']) => {
                written.starts_with(regex).then(|| written.to_owned())
            }
            // What the expression begins with is within the block.
            Paths::Prefix(path) => {
                let literal = written.strip_prefix('^')?.replace("\\.", ".").replace("\\-", "-");
                let is_plain = !path.contains(['(', '[', '*', '+', '?', '|', '\\', '{']);
                (is_plain && literal.starts_with(path)).then(|| written.to_owned())
            }
            _ => None,
        }
    }

    fn is_everything(&self) -> bool {
        matches!(self, Paths::Prefix(path) if path == "/")
    }

    /// Names with a leading dot, which Outboard never serves.
    fn is_dotfiles(&self) -> bool {
        matches!(self, Paths::Matching(regex) if regex.trim_start_matches("(?i)").trim_start_matches('^').starts_with("/\\."))
    }
}

pub(super) fn translate(
    location: &Directive,
    server: &Directive,
    around: Surroundings<'_>,
    app: &mut App,
    draft: &mut Draft,
) {
    let paths = Paths::of(location);
    if refuses(location) {
        return deny(location, &paths, app, draft);
    }
    let patterns = (!paths.is_everything()).then(|| paths.patterns());
    access::translate(&location.children, (patterns, &paths.regex()), around, app, draft);
    if matches!(paths, Paths::Matching(_)) && sends_fields(location) {
        let is_other = |other: &&Directive| {
            let others = Paths::of(other);
            matches!(others, Paths::Prefix(_)) && !others.is_everything() && sends_fields(other)
        };
        if let Some(other) = server.all("location").find(is_other) {
            let other = other.arguments.join(" ");
            draft.omit(
                location,
                format!("below `location {other}` its header fields are sent as well: nginx applies one block"),
            );
        }
    }
    let runs_php = location.first("fastcgi_pass").is_some();
    // What `expires` sets comes first, and `add_header` adds to it.
    let (expiry, others): (Vec<_>, Vec<_>) =
        location.children.iter().partition(|one| one.name == "expires");
    for one in expiry.into_iter().chain(others) {
        match one.name.as_str() {
            "location" => translate(one, server, around, app, draft),
            "if" => {
                let (regex, all) =
                    (paths.regex(), location.children.iter().chain(&server.children));
                let regex = if paths.is_everything() { "^".to_owned() } else { regex };
                let pattern = match paths.patterns().as_deref() {
                    Some([one]) => Some(one.clone()),
                    _ => None,
                };
                let place = Place { regex, pattern, statements: all.collect() };
                condition::translate(one, &place, around, app, draft);
            }
            "autoindex" => match &paths {
                Paths::Prefix(path) if path.ends_with('/') => {
                    let pattern = format!("{path}**");
                    server::autoindex(one, &pattern, app);
                }
                _ if one.argument(0) == "on" => {
                    draft.omit(one, "a listing is for directories: write static.autoindex");
                }
                _ => {}
            },
            "default_type" if location.first("return").is_some() => default_type(one, &paths, app),
            "try_files" if runs_php => {}
            "try_files" if paths.is_everything() => try_files(one, server, app, draft),
            // Files that do not exist get 404, or the front controller of the site.
            "try_files" if one.arguments.last().is_some_and(|last| last.starts_with('=')) => {}
            "proxy_pass" => proxy(one, location, &paths, around, app, draft),
            "proxy_set_header" | "proxy_read_timeout" | "proxy_connect_timeout"
                if location.first("proxy_pass").is_some() =>
            {
                proxy_header(one, draft);
            }
            "return" => server::redirect(one, &paths.regex(), app, draft),
            "rewrite" => match paths.rewriting(one.argument(0), one.argument(1)) {
                Some(pattern) => server::rewrite(one, &pattern, app, draft),
                None => draft
                    .omit(one, "it holds in its block: write [[app.NAME.rewrite]] for these paths"),
            },
            "auth_request" | "auth_jwt" | "secure_link" => {
                app.refuse(&paths.regex(), false);
                draft.omit(
                    one,
                    "the paths are refused: write [[app.NAME.access]] with `forward_auth`",
                );
            }
            "fastcgi_param" => fastcgi_param(one, app, draft),
            "fastcgi_read_timeout" if runs_php => server::general(one, None, app, draft),
            "client_max_body_size" if paths.is_everything() || runs_php => {
                server::general(one, None, app, draft);
            }
            name if access::is_about_access(name) => {}
            "internal" if runs_php => {}
            "root" if server.first("root").is_some_and(|root| root.arguments == one.arguments) => {}
            "index" if paths.is_everything() => server::general(one, None, app, draft),
            "add_header" | "expires" => with_paths(one, &paths, app, draft),
            "alias" | "root" => draft.omit(one, "write an app with `path` and this root"),
            _ => server::omit_unless_quiet(one, draft),
        }
    }
    only_files(location, &paths, app);
}

/// The content type of a text.
fn default_type(one: &Directive, paths: &Paths, app: &mut App) {
    for pattern in paths.patterns().unwrap_or_default() {
        app.header((Some(&pattern), false), "set", "Content-Type", one.argument(0));
    }
}

fn sends_fields(location: &Directive) -> bool {
    location.first("add_header").or(location.first("expires")).is_some()
}

fn refuses(location: &Directive) -> bool {
    let denies = location.all("deny").any(|one| one.argument(0) == "all")
        && location.first("allow").is_none();
    let returns = location.all("return").any(|one| {
        matches!(one.argument(0), "403" | "404" | "410" | "444") && one.arguments.len() == 1
    });
    denies || returns || (location.first("internal").is_some() && location.children.len() == 1)
}

fn deny(location: &Directive, paths: &Paths, app: &mut App, draft: &mut Draft) {
    for one in &location.children {
        if one.name == "location" {
            draft.omit(one, "the block around it denies its paths");
        }
    }
    match paths {
        _ if paths.is_dotfiles() => {}
        Paths::Prefix(path) if path == "/" => {
            draft.omit(location, "the site is denied as a whole: it is denied here too");
            app.push("deny", "/**");
        }
        Paths::Prefix(path) if path.ends_with('/') => app.push("deny", text(path)),
        Paths::Prefix(path) => app.push("deny", text(&format!("{path}**"))),
        Paths::Exact(path) => app.push("deny", text(path)),
        // An earlier block serves the front controller.
        Paths::Matching(regex) if matches_front_controller(regex) => app.refuse(regex, true),
        Paths::Matching(regex) => match extensions(regex) {
            Some(all) => all.iter().for_each(|one| app.push("deny", format!("*.{one}"))),
            None => {
                app.refuse(regex, false);
                if !is_expressible(regex) {
                    draft.omit(location, "more paths are refused: the expression has look-around");
                }
            }
        },
    }
}

/// A block of files, without a word on those that do not exist: they are 404, and not pages of the front
/// controller.
fn only_files(location: &Directive, paths: &Paths, app: &mut App) {
    const HANDLERS: [&str; 11] = [
        "try_files",
        "fastcgi_pass",
        "proxy_pass",
        "return",
        "rewrite",
        "root",
        "alias",
        "location",
        "uwsgi_pass",
        "error_page",
        "autoindex",
    ];
    let is_handled = HANDLERS.iter().any(|name| location.first(name).is_some());
    let regex = paths.regex();
    if !is_handled && !paths.is_everything() && is_expressible(&regex) {
        app.rewrite_when(&regex, None, Some(404), true);
    }
}

/// `try_files` of the whole site names its front controller.
pub(super) fn try_files(one: &Directive, server: &Directive, app: &mut App, draft: &mut Draft) {
    let Some(last) = one.arguments.last() else { return };
    let script = match last.strip_prefix('@') {
        Some(_) => named_script(last, server),
        None => {
            last.split(['?', '$']).next().filter(|path| path.ends_with(".php")).map(str::to_owned)
        }
    };
    match script {
        Some(script) => app.set("front_controller", text(&script)),
        None if last.starts_with('=') => {}
        None => draft.omit(one, "the last part is not a script: set `front_controller`"),
    }
}

/// The script to which a named location rewrites everything.
fn named_script(name: &str, server: &Directive) -> Option<String> {
    let location = server.all("location").find(|one| one.argument(0) == name)?;
    let rewrite = location
        .all("rewrite")
        .find(|one| matches!(one.argument(0), "^" | "^(.*)$" | "^/(.*)$"))?;
    let path = rewrite.argument(1).split(['?', '$']).next()?.trim_end_matches('/');
    path.ends_with(".php").then(|| path.to_owned())
}

fn proxy(
    one: &Directive,
    location: &Directive,
    paths: &Paths,
    around: Surroundings<'_>,
    app: &mut App,
    draft: &mut Draft,
) {
    let Some(patterns) = paths.patterns() else {
        return draft.omit(one, "a proxied route has a path pattern: write [[app.NAME.proxy]]");
    };
    let url = one.argument(0);
    let Some((scheme, rest)) = url.split_once("://").filter(|_| !url.contains('$')) else {
        return draft.omit(one, "the URL has variables: write [[app.NAME.proxy]]");
    };
    let (authority, uri) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let has_same_path = matches!(paths, Paths::Prefix(path) | Paths::Exact(path) if path == uri);
    if !uri.is_empty() && !has_same_path {
        return draft.omit(one, "the prefix of the path is replaced: serve it at the same path");
    }
    let target = match around.upstreams.get(authority) {
        Some(block) => upstream::target(block, scheme, draft),
        None if authority.starts_with("unix:") => {
            return draft.omit(one, "the server has a Unix socket: write [upstream.NAME]");
        }
        None => Some(format!("{scheme}://{authority}")),
    };
    let Some(target) = target else { return draft.omit(one, "its upstream has no server") };
    let preserves_host = location.all("proxy_set_header").any(|header| {
        header.argument(0).eq_ignore_ascii_case("host") && header.argument(1).contains("host")
    });
    for pattern in patterns {
        let mut route = Table::new();
        route.insert("path".to_owned(), text(&pattern));
        route.insert("upstream".to_owned(), text(&target));
        if !preserves_host {
            route.insert("preserve_host".to_owned(), false.into());
        }
        app.push("proxy", Value::Table(route));
    }
}

fn proxy_header(one: &Directive, draft: &mut Draft) {
    let name = one.argument(0).to_ascii_lowercase();
    let is_usual = ["host", "upgrade", "connection", "x-real-ip"].contains(&name.as_str());
    if one.name == "proxy_set_header" && (is_usual || name.starts_with("x-forwarded-")) {
        return;
    }
    draft.omit(one, "see the keys of [[app.NAME.proxy]]");
}

fn fastcgi_param(one: &Directive, app: &mut App, draft: &mut Draft) {
    let (name, value) = (one.argument(0), one.argument(1));
    let is_standard = value.contains('$') && !name.starts_with("PHP_");
    match name {
        "PHP_VALUE" | "PHP_ADMIN_VALUE" => {
            for line in value.lines().filter(|line| !line.trim().is_empty()) {
                match line.split_once('=').filter(|_| !line.contains('$')) {
                    Some((key, value)) => {
                        app.set_in("php.ini", key.trim(), text(value.trim().trim_matches('"')));
                    }
                    None => draft.omit(one, "set php.ini of the app"),
                }
            }
        }
        // CGI/1.1 variables, which Outboard sets.
        "HTTPS" | "REDIRECT_STATUS" | "GATEWAY_INTERFACE" | "SERVER_SOFTWARE" | "HTTP_PROXY" => {}
        _ if is_standard => {}
        _ => app.set_in("php.params", name, text(value)),
    }
}

fn with_paths(one: &Directive, paths: &Paths, app: &mut App, draft: &mut Draft) {
    if paths.is_everything() {
        return server::general(one, None, app, draft);
    }
    match paths.patterns() {
        Some(patterns) => {
            patterns.iter().for_each(|path| server::general(one, Some(path), app, draft));
        }
        None => draft.omit(one, "headers have path patterns: write [[app.NAME.headers]]"),
    }
}
