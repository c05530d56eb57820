//! Statements of a virtual host and of the sections in it.
//!
//! Invariant: a section that refuses requests is translated to a rule that refuses at least those, or it is
//! listed.

use super::{access, balancer, rewrite};
use crate::directive::{Directive, first};
use crate::draft::{App, Draft, strings, text};
use crate::pattern::{extensions, is_expressible, matches_front_controller, seconds, size};
use toml::{Table, Value};

/// Statements that change nothing, since Outboard does so anyway or has no such part.
const QUIET: [&str; 42] = [
    "serveradmin",
    "allowoverride",
    "loadmodule",
    "serverroot",
    "user",
    "group",
    "errorlog",
    "customlog",
    "loglevel",
    "logformat",
    "sslengine",
    "sslcertificatefile",
    "sslcertificatekeyfile",
    "sslprotocol",
    "sslciphersuite",
    "sslhonorcipherorder",
    "sslsessioncache",
    "sslsessiontickets",
    "servername",
    "serveralias",
    "documentroot",
    "listen",
    "rewriteengine",
    "rewritebase",
    "timeout",
    "keepalive",
    "keepalivetimeout",
    "maxkeepaliverequests",
    "servertokens",
    "serversignature",
    "usecanonicalname",
    "sethandler",
    "addhandler",
    "protocols",
    "accessfilename",
    "expiresactive",
    "addtype",
    "typesconfig",
    "hostnamelookups",
    "proxypreservehost",
    "proxyrequests",
    "proxypassreverse",
];

/// Statements that have no place in Outboard but the whole site.
const OF_SITE: [&str; 11] = [
    "directoryindex",
    "fallbackresource",
    "errordocument",
    "limitrequestbody",
    "proxytimeout",
    "php_value",
    "php_flag",
    "php_admin_value",
    "php_admin_flag",
    "addoutputfilterbytype",
    "setoutputfilter",
];

fn is_engine(one: &Directive) -> bool {
    one.name.starts_with("php_") && one.argument(0) == "engine"
}

/// Whether a section with a condition refuses some clients who read its paths.
fn restricts_reading(one: &Directive) -> bool {
    let has_get = one.arguments.iter().any(|method| method.eq_ignore_ascii_case("get"));
    let concerns_get = match one.name.as_str() {
        "<if" | "<elseif" | "<else" => true,
        "<limit" => has_get,
        "<limitexcept" => !has_get,
        _ => false,
    };
    let is_open = |child: &Directive| child.text().to_ascii_lowercase().contains("all granted");
    concerns_get
        && one.children.iter().any(|child| access::is_about_access(&child.name) && !is_open(child))
}

/// Where statements are.
pub(super) struct Place<'a> {
    /// The document root.
    pub(super) root: &'a str,
    /// The URL path of the section, with a slash at its end.
    pub(super) below: String,
    pub(super) is_directory: bool,
}

pub(super) fn omit_unless_quiet(one: &Directive, draft: &mut Draft) {
    if QUIET.contains(&one.name.as_str()) || one.name == "options" {
        return;
    }
    let reason = match one.name.as_str() {
        "include" | "includeoptional" => "import the included file itself",
        "alias" | "scriptalias" | "aliasmatch" => "write an app with `path` and this root",
        "expiresbytype" | "expiresdefault" => "set static.cache_control or [[app.NAME.headers]]",
        "setenv" | "setenvif" => "write php.env or php.params",
        "<if" | "<else" | "<elseif" => {
            "left out: write [app.NAME.condition.CONDITION], and `if` in a rule"
        }
        name if name.starts_with("ssl") => "see the keys of [[listen]]",
        _ => "there is no such key",
    };
    draft.omit(one, reason);
}

pub(super) fn translate(
    statements: &[Directive],
    place: &Place<'_>,
    app: &mut App,
    draft: &mut Draft,
) {
    let patterns = (place.below != "/").then(|| vec![whole(place)]);
    if access::translate(statements, patterns.as_deref(), app, draft) {
        deny_below(place, app);
    }
    let php_proxy = |one: &Directive| one.text().contains("fcgi://");
    for one in statements {
        match one.name.as_str() {
            name if OF_SITE.contains(&name) && place.below != "/" && !is_engine(one) => {
                draft.omit(
                    one,
                    format!("it holds in {} only: write an app with `path`", place.below),
                );
            }
            name if restricts_reading(one) => {
                deny_below(place, app);
                draft.omit(one, format!("its paths are refused: `{name}` is not translated"));
            }
            "sslverifyclient" if one.argument(0).eq_ignore_ascii_case("require") => {
                client_certificate(one, app, draft);
            }
            "<directory" | "<location" | "<files" | "<filesmatch" | "<directorymatch"
            | "<locationmatch" => {
                section(one, place, app, draft);
            }
            "directoryindex" => {
                let names = one.arguments.iter().filter(|name| *name != "disabled");
                app.set(
                    "index",
                    strings(names.map(|name| name.trim_start_matches('/').to_owned())),
                );
            }
            "setenv" if place.below == "/" => {
                app.set_in("php.params", one.argument(0), text(one.argument(1)));
            }
            "fallbackresource" => match one.argument(0) {
                "disabled" => {}
                script => app.set("front_controller", text(script)),
            },
            "options" => options(one, place, app),
            "redirect" | "redirectpermanent" | "redirecttemp" | "redirectmatch" => {
                redirect(one, app, draft);
            }
            "rewritecond" => {}
            "header" => header(one, place, app, draft),
            "errordocument" => error_document(one, app, draft),
            "proxypassmatch" | "proxypass" if php_proxy(one) => {}
            "proxypass" => proxy(one, statements, place, app, draft),
            // Where a route names it.
            "<proxy" if balancer::is_balancer(one) => {}
            name if is_setting(name) => setting(one, place, app, draft),
            "addoutputfilterbytype" | "setoutputfilter" => app.set("compress", true),
            name if access::is_about_access(name) => {}
            _ => {
                if one.name != "rewriterule" {
                    omit_unless_quiet(one, draft);
                }
            }
        }
    }
    rewrite::translate(statements, place, app, draft);
}

fn client_certificate(one: &Directive, app: &mut App, draft: &mut Draft) {
    app.set("require_client_certificate", true);
    draft
        .omit(one, "each request is refused until `client_ca` of [[listen]] names the authorities");
}

/// `Options [+|-]Indexes`; without a sign they replace those of the directories around it.
fn options(one: &Directive, place: &Place<'_>, app: &mut App) {
    let pattern = format!("{}**", place.below);
    let is_relative = one.arguments.iter().any(|option| option.starts_with(['+', '-']));
    let has = |names: &[&str]| {
        one.arguments
            .iter()
            .any(|option| names.iter().any(|name| option.eq_ignore_ascii_case(name)))
    };
    if has(&["Indexes", "+Indexes", "All", "+All"]) {
        app.push("static.autoindex", text(&pattern));
    } else if !is_relative || has(&["-Indexes", "-All"]) {
        app.unlisted.push((one.clone(), pattern));
    }
}

fn is_setting(name: &str) -> bool {
    name.starts_with("php_") || ["limitrequestbody", "proxytimeout"].contains(&name)
}

/// A setting of PHP, or a limit.
fn setting(one: &Directive, place: &Place<'_>, app: &mut App, draft: &mut Draft) {
    match one.name.as_str() {
        "php_admin_value" | "php_value" => {
            app.set_in("php.ini", one.argument(0), text(one.argument(1)));
        }
        "php_admin_flag" | "php_flag" if one.argument(0) == "engine" => {
            no_php(one, place, app);
        }
        "php_admin_flag" | "php_flag" => {
            app.set_in(
                "php.ini",
                one.argument(0),
                one.argument(1).eq_ignore_ascii_case("on").into(),
            );
        }
        "limitrequestbody" => match size(one.argument(0)) {
            Some(size) if !size.starts_with("0 ") => app.set("limits.body", size),
            _ => draft.omit(one, "set limits.body to a size"),
        },
        "proxytimeout" => match seconds(one.argument(0)) {
            Some(time) => app.set("limits.request_deadline", time.max(1)),
            None => draft.omit(one, "set limits.request_deadline"),
        },
        _ => omit_unless_quiet(one, draft),
    }
}

fn deny_below(place: &Place<'_>, app: &mut App) {
    app.push("deny", text(&if place.below == "/" { "/**".to_owned() } else { whole(place) }));
}

/// The pattern of a rule for a place as Apache means it: the path itself, which may be one of the front controller,
/// and everything below it.
fn whole(place: &Place<'_>) -> String {
    place.below.trim_end_matches('/').to_owned()
}

fn no_php(one: &Directive, place: &Place<'_>, app: &mut App) {
    if one.argument(1).eq_ignore_ascii_case("off") {
        app.push("no_php_in", text(if place.below == "/" { "/**" } else { &place.below }));
    }
}

fn section(one: &Directive, place: &Place<'_>, app: &mut App, draft: &mut Draft) {
    let is_regex = one.name.ends_with("match") || one.argument(0) == "~";
    let name = one.arguments.last().map_or("", String::as_str);
    let path = match one.name.as_str() {
        "<directory" if !is_regex => match below_root(name, place.root) {
            Some(path) => path,
            None => return outside(one, place, draft),
        },
        "<location" if !is_regex => format!("{}/", name.trim_end_matches('/')),
        _ => return files(one, name, is_regex, place, app, draft),
    };
    let is_directory = one.name == "<directory";
    let inner = Place { root: place.root, below: path, is_directory };
    translate(&one.children, &inner, app, draft);
}

/// A section for a directory outside of the root. Access to one above the root, such as `/`, is decided by
/// the root's own section.
fn outside(one: &Directive, place: &Place<'_>, draft: &mut Draft) {
    let name = one.argument(0).trim_end_matches('/');
    let is_above = place.root.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    if !is_above {
        return draft.omit(one, "no app has files in this directory");
    }
    let is_access = |child: &&Directive| access::is_about_access(&child.name);
    one.children.iter().filter(|child| !is_access(child)).for_each(|child| {
        omit_unless_quiet(child, draft);
    });
}

/// The URL path of a directory. That of the root itself, and of those above it, is `/` or none.
fn below_root(directory: &str, root: &str) -> Option<String> {
    let (directory, root) = (directory.trim_end_matches('/'), root.trim_end_matches('/'));
    let below = directory.strip_prefix(root)?;
    (below.is_empty() || below.starts_with('/')).then(|| format!("{below}/"))
}

/// Sections by the name of a file, or by an expression.
fn files(
    one: &Directive,
    name: &str,
    is_regex: bool,
    place: &Place<'_>,
    app: &mut App,
    draft: &mut Draft,
) {
    let patterns = match is_regex {
        false => Some(vec![if place.below == "/" {
            name.to_owned()
        } else {
            format!("{}**/{name}", place.below)
        }]),
        true => extensions(name)
            .map(|all| all.into_iter().map(|one| format!("{}*.{one}", prefix(place))).collect()),
    };
    let mut inexpressible = App::default();
    let is_denied = match &patterns {
        Some(patterns) => access::translate(&one.children, Some(patterns), app, draft),
        None => access::translate(&one.children, None, &mut inexpressible, draft),
    };
    let at = match (one.name.as_str(), name.strip_prefix('^')) {
        ("<filesmatch", Some(rest)) => format!("/{rest}"),
        ("<filesmatch", None) => format!("(?:^|/)[^/]*{name}"),
        _ => name.to_owned(),
    };
    if inexpressible.keys.contains_key("access") {
        app.refuse(&at, false);
        draft.omit(one, "its paths have no pattern and are refused: write [[app.NAME.access]]");
    }
    let is_dotfiles = name.starts_with(".ht") || name.starts_with("^\\.");
    match patterns {
        _ if is_denied && is_dotfiles => {}
        _ if is_denied && is_regex && matches_front_controller(name) => {
            app.refuse(&at, false);
            draft.omit(one, "index.php is among the paths that are refused");
        }
        Some(patterns) if is_denied => {
            patterns.iter().for_each(|pattern| app.push("deny", text(pattern)));
        }
        None if is_denied => {
            app.refuse(&at, false);
            if !is_expressible(&at) {
                draft.omit(one, "more paths are refused: the expression has look-around");
            }
        }
        Some(patterns) => {
            for child in &one.children {
                match child.name.as_str() {
                    "header" => patterns
                        .iter()
                        .for_each(|pattern| header_at(child, Some(pattern), app, draft)),
                    name if access::is_about_access(name) => {}
                    _ => omit_unless_quiet(child, draft),
                }
            }
        }
        None => {
            let others = one.children.iter().filter(|child| !access::is_about_access(&child.name));
            others.for_each(|child| omit_unless_quiet(child, draft));
        }
    }
}

fn prefix(place: &Place<'_>) -> String {
    if place.below == "/" { String::new() } else { format!("{}**", place.below) }
}

fn header(one: &Directive, place: &Place<'_>, app: &mut App, draft: &mut Draft) {
    let path = format!("{}**", place.below);
    header_at(one, (place.below != "/").then_some(path.as_str()), app, draft);
}

fn header_at(one: &Directive, path: Option<&str>, app: &mut App, draft: &mut Draft) {
    let arguments: Vec<&str> = one
        .arguments
        .iter()
        .map(String::as_str)
        .filter(|one| !["always", "onsuccess"].contains(one))
        .collect();
    let place = (path, one.argument(0) == "always");
    let [action, name, values @ ..] = arguments.as_slice() else {
        return draft.omit(one, "the statement is not complete");
    };
    let value = values.first().copied().unwrap_or_default();
    let has_condition = values.len() > 1 || value.contains("%{");
    match action.to_ascii_lowercase().as_str() {
        "set" | "setifempty" if !has_condition => app.header(place, "set", name, value),
        "add" | "append" | "merge" if !has_condition => app.header(place, "add", name, value),
        "unset" if values.is_empty() => app.header(place, "remove", name, ""),
        _ => draft.omit(one, "a header rule has a constant value and no condition"),
    }
}

fn error_document(one: &Directive, app: &mut App, draft: &mut Draft) {
    let (status, page) = (one.argument(0), one.argument(1));
    if !page.starts_with('/') || page.contains(['?', '%']) || page.ends_with(".php") {
        return draft.omit(one, "an error page is a file below the root");
    }
    app.set_in("error_pages", status, text(page.trim_start_matches('/')));
}

fn redirect(one: &Directive, app: &mut App, draft: &mut Draft) {
    let mut arguments: Vec<&str> = one.arguments.iter().map(String::as_str).collect();
    let mut status = if one.name == "redirectpermanent" { 301 } else { 302 };
    let named = match arguments.first().map(|first| first.to_ascii_lowercase()).as_deref() {
        Some("permanent") => Some(301),
        Some("temp") => Some(302),
        Some("seeother") => Some(303),
        Some("gone") => Some(410),
        Some(number) => number.parse().ok(),
        None => None,
    };
    if let Some(named) = named {
        status = named;
        arguments.remove(0);
    }
    let is_error = (400..600).contains(&status);
    let pattern = match (one.name.as_str(), arguments.first()) {
        ("redirectmatch", Some(pattern)) => (*pattern).to_owned(),
        // Whole segments (mod_alias), so that `/blog.evil.example` is not below `/blog`.
        (_, Some(path)) if path.ends_with('/') => format!("^{}(.*)$", regex::escape(path)),
        (_, Some(path)) => format!("^{}(/.*)?$", regex::escape(path)),
        _ => return draft.omit(one, "the statement is not complete"),
    };
    if !is_expressible(&pattern) || !(is_error || matches!(status, 301 | 302 | 303 | 307 | 308)) {
        return draft.omit(one, "the expression has look-around, or the status is not a redirect");
    }
    match arguments.get(1) {
        _ if is_error => app.rewrite(&pattern, None, Some(status)),
        Some(to) if one.name == "redirectmatch" => app.rewrite(&pattern, Some(to), Some(status)),
        Some(to) => {
            let is_origin = to.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
            // What follows a host must not become a part of its name.
            let slash = if is_origin && arguments[0].ends_with('/') { "/" } else { "" };
            app.rewrite(&pattern, Some(&format!("{to}{slash}$1")), Some(status));
        }
        None => draft.omit(one, "the statement is not complete"),
    }
}

fn proxy(
    one: &Directive,
    statements: &[Directive],
    place: &Place<'_>,
    app: &mut App,
    draft: &mut Draft,
) {
    let (path, url) = match one.argument(0) {
        // In a `<Location>`.
        url if url.contains("://") => (place.below.as_str(), url),
        path => (path, one.argument(1)),
    };
    if url == "!" {
        return draft.omit(one, "exceptions are not translated");
    }
    let is_proxied = |scheme: &str| scheme.starts_with("http") || scheme == "balancer";
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| is_proxied(scheme))
    else {
        return draft.omit(one, "a proxied server has an http or https URL");
    };
    let (authority, uri) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if uri.trim_end_matches('/') != path.trim_end_matches('/') {
        return draft.omit(one, "the prefix of the path is replaced: serve it at the same path");
    }
    let upstream = match scheme {
        "balancer" => match balancer::target(one, authority, statements, draft) {
            Some(name) => name,
            None => return,
        },
        _ => format!("{scheme}://{authority}"),
    };
    let preserves_host = first(statements, "proxypreservehost")
        .is_some_and(|one| one.argument(0).eq_ignore_ascii_case("on"));
    let mut route = Table::new();
    route.insert("path".to_owned(), text(&format!("{path}**")));
    route.insert("upstream".to_owned(), text(&upstream));
    if !preserves_host {
        route.insert("preserve_host".to_owned(), false.into());
    }
    app.push("proxy", Value::Table(route));
}
