//! `server` blocks: addresses, names, and the statements that concern the whole site.

use super::condition::Place;
use super::surroundings::Surroundings;
use super::{access, condition, location};
use crate::directive::Directive;
use crate::draft::{App, Draft, Redirected, strings, text};
use crate::pattern::{is_expressible, seconds, size};

/// Statements of `http` that servers inherit.
const INHERITED: [&str; 10] = [
    "root",
    "index",
    "client_max_body_size",
    "gzip",
    "add_header",
    "expires",
    "error_page",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_protocols",
];

/// Statements that change nothing, since Outboard does so anyway or has no such part.
const QUIET: [&str; 55] = [
    "user",
    "worker_processes",
    "events",
    "pid",
    "sendfile",
    "tcp_nopush",
    "tcp_nodelay",
    "include_mime",
    "default_type",
    "types_hash_max_size",
    "server_tokens",
    "server_names_hash_bucket_size",
    "http2",
    "charset",
    "gzip_types",
    "gzip_vary",
    "gzip_proxied",
    "gzip_comp_level",
    "gzip_min_length",
    "gzip_buffers",
    "gzip_http_version",
    "gzip_disable",
    "gzip_static",
    "brotli",
    "brotli_types",
    "ssl_ciphers",
    "ssl_prefer_server_ciphers",
    "ssl_session_cache",
    "ssl_session_timeout",
    "ssl_session_tickets",
    "ssl_dhparam",
    "ssl_ecdh_curve",
    "fastcgi_buffers",
    "fastcgi_buffer_size",
    "fastcgi_busy_buffers_size",
    "fastcgi_index",
    "fastcgi_split_path_info",
    "fastcgi_pass",
    "fastcgi_keep_conn",
    "fastcgi_intercept_errors",
    "fastcgi_request_buffering",
    "fastcgi_max_temp_file_size",
    "client_body_buffer_size",
    "fastcgi_hide_header",
    "log_not_found",
    "access_log",
    "http",
    "types",
    "open_file_cache",
    "keepalive_timeout",
    "proxy_http_version",
    "proxy_redirect",
    "proxy_buffering",
    "worker_rlimit_nofile",
    "reset_timedout_connection",
];

pub(super) fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name)
}

pub(super) fn omit_unless_quiet(directive: &Directive, draft: &mut Draft) {
    let file = directive.argument(0).rsplit('/').next().unwrap_or_default();
    let is_common = matches!(
        file,
        "mime.types" | "fastcgi_params" | "fastcgi.conf" | "fastcgi-php.conf" | "proxy_params"
    );
    if QUIET.contains(&directive.name.as_str()) || (directive.name == "include" && is_common) {
        return;
    }
    let reason = match directive.name.as_str() {
        "include" => "the file is not there or the name is a pattern: import the file itself",
        "if" => "left out: write [app.NAME.condition.CONDITION], and `if` in a rule",
        "error_log" | "slowlog" => "write log.error.path",
        "limit_conn" | "limit_conn_zone" => "see limits.connections_per_ip",
        "resolver" | "ssl_stapling" | "ssl_stapling_verify" | "ssl_trusted_certificate" => {
            "see `ocsp` of [[listen.tls]]"
        }
        "ssl_client_certificate" | "ssl_verify_client" => "see `client_ca` of [[listen]]",
        "map" | "geo" | "split_clients" | "set" => "variables are not translated",
        "fastcgi_cache" | "fastcgi_cache_path" | "proxy_cache" => "see [app.NAME.page_cache]",
        "set_real_ip_from" => {
            "only these servers trust the proxies: write `trusted_proxies` in [[listen]]"
        }
        "real_ip_header" if directive.argument(0).eq_ignore_ascii_case("x-forwarded-for") => return,
        "real_ip_header" => "the address of the client is the last one of X-Forwarded-For",
        "real_ip_recursive" => "the last address of X-Forwarded-For is the client's",
        "autoindex_exact_size" | "autoindex_localtime" | "autoindex_format" | "valid_referers" => {
            return;
        }
        _ => "there is no such key",
    };
    draft.omit(directive, reason);
}

pub(super) fn translate(server: &Directive, around: Surroundings<'_>, draft: &mut Draft) {
    let mut app = App::default();
    hosts(server, &mut app, draft);
    let redirects = https_redirect(server);
    if let Some((one, to)) = host_redirect(server) {
        let status = one.argument(0).parse().unwrap_or(302);
        let names_itself =
            app.hosts.contains(&to.rsplit("://").next().unwrap_or_default().to_owned());
        listen(server, around, redirects.is_some() && names_itself, draft);
        let hosts = app.hosts;
        return draft.redirected.push((one.clone(), Redirected { hosts, to, status }));
    }
    let first = |name: &str| {
        server.first(name).or_else(|| around.general.iter().find(|one| one.name == name))
    };
    let root = first("root").map(|root| root.argument(0).to_owned());
    listen(server, around, redirects.is_some(), draft);
    if let Some(redirect) = redirects {
        let has_tls_name = redirect.argument(1).starts_with("https://$");
        if !has_tls_name {
            draft.omit(
                redirect,
                "requests are redirected to https with the host that was requested",
            );
        }
        return;
    }
    if draft.apps.iter().any(|other| other.hosts.iter().any(|host| app.hosts.contains(host)))
        || (app.hosts.is_empty() && draft.apps.iter().any(|other| other.hosts.is_empty()))
    {
        return draft.omit(server, "another server has the same names: merge the two");
    }
    let Some(root) = root else {
        return match server.first("return") {
            Some(one) if server.first("location").is_none() => {
                let scheme = if server.all("listen").any(is_tls) { "https" } else { "http" };
                let to = one.arguments.iter().map(|to| to.replace("$scheme", scheme)).collect();
                redirect(&Directive { arguments: to, ..one.clone() }, "^", &mut app, draft);
                draft.redirects.push(app);
            }
            _ => draft.omit(server, "a site without `root` is not an app"),
        };
    };
    app.set("root", text(&root));
    app.set("front_controller", "none");
    site(server, around, &mut app, draft);
    draft.apps.push(app);
}

/// What a server with a root says, and inherits.
fn site(server: &Directive, around: Surroundings<'_>, app: &mut App, draft: &mut Draft) {
    for name in INHERITED {
        let own = server.first(name).is_some();
        let inherited = around.general.iter().filter(|one| one.name == name && !own);
        inherited.for_each(|one| general(one, None, app, draft));
    }
    let inherited = around.general.iter().filter(|one| server.first(&one.name).is_none());
    let all: Vec<Directive> = inherited.chain(&server.children).cloned().collect();
    access::translate(&all, (None, ""), around, app, draft);
    if let Some(one) = all.iter().find(|one| one.name == "auth_request") {
        app.push("deny", "/**");
        draft.omit(one, "the site is refused: write [[app.NAME.access]] with `forward_auth`");
    }
    for directive in &server.children {
        match directive.name.as_str() {
            "location" if !directive.argument(0).starts_with('@') => {
                location::translate(directive, server, around, app, draft);
            }
            "location" | "listen" | "server_name" | "root" => {}
            "auth_request" => {}
            "if" => {
                let statements = server.children.iter().collect();
                let place = Place { regex: "^".to_owned(), pattern: None, statements };
                condition::translate(directive, &place, around, app, draft);
            }
            name if access::is_about_access(name) => {}
            _ => general(directive, None, app, draft),
        }
    }
    log_format(server, around, app, draft);
}

/// The format that an `access_log` names.
fn log_format(server: &Directive, around: Surroundings<'_>, app: &mut App, draft: &mut Draft) {
    let of_server = server.first("access_log");
    let log = of_server.or_else(|| around.general.iter().find(|one| one.name == "access_log"));
    let Some(name) = log.map(|one| one.argument(1)).filter(|name| !name.is_empty()) else { return };
    let is_it = |one: &&Directive| one.name == "log_format" && one.argument(0) == name;
    let Some(format) = around.general.iter().find(is_it) else { return };
    if format.argument(1) == "escape=json" {
        app.set("log.access.format", "json");
        return draft.omit(format, "written as JSON, with the names of Outboard's fields");
    }
    let pieces = format.arguments.iter().skip(1).filter(|one| !one.starts_with("escape="));
    match crate::log_format::of_nginx(&pieces.cloned().collect::<String>()) {
        Some(format) => app.set("log.access.format", text(&format)),
        None => draft.omit(format, "a variable of it has no field: write log.access.format"),
    }
}

fn hosts(server: &Directive, app: &mut App, draft: &mut Draft) {
    for names in server.all("server_name") {
        for name in &names.arguments {
            match name.as_str() {
                "_" | "" | "localhost" => {}
                name if name.starts_with('.') => {
                    app.hosts.extend([name[1..].to_owned(), format!("*{name}")]);
                }
                name if name.starts_with('~') || name.ends_with(".*") || name.contains('$') => {
                    draft.omit(names, format!("`{name}`: hosts are names or `*.name`"));
                }
                name => app.hosts.push(name.to_ascii_lowercase()),
            }
        }
    }
}

/// A server that only redirects to another host, with the path and the query; and the scheme and host.
fn host_redirect(server: &Directive) -> Option<(&Directive, String)> {
    let redirect = server.first("return")?;
    let names: Vec<&String> = server.all("server_name").flat_map(|one| &one.arguments).collect();
    let are_hosts =
        |name: &String| !name.starts_with('~') && !["_", "", "localhost"].contains(&name.as_str());
    let is_host = !names.is_empty() && names.into_iter().all(are_hosts);
    let status = redirect.argument(0);
    let scheme = if server.all("listen").any(is_tls) { "https" } else { "http" };
    let to = redirect.argument(1).strip_suffix("$request_uri")?.replace("$scheme", scheme);
    let (_, host) = to.split_once("://")?;
    let is_plain = !host.is_empty() && !host.contains(['$', '/']) && to.starts_with("http");
    let is_whole = server.first("location").is_none() && server.first("if").is_none();
    (is_host && is_plain && is_whole && matches!(status, "301" | "302" | "307" | "308"))
        .then(|| (redirect, to.to_ascii_lowercase()))
}

/// `set_real_ip_from`, for the whole server.
pub(super) fn trusted_proxies<'d>(all: impl Iterator<Item = &'d Directive>, draft: &mut Draft) {
    let named = all.filter(|one| one.name == "set_real_ip_from").filter_map(|one| {
        let network = one.argument(0);
        if network == "unix:" { Some("unix".to_owned()) } else { crate::access::network(network) }
    });
    let mut networks: Vec<String> = named.collect();
    networks.dedup();
    if !networks.is_empty() {
        draft.general.insert("trusted_proxies".to_owned(), strings(networks));
    }
}

/// Whether the proxies of a statement are trusted by the whole server.
fn is_trusted(one: &Directive, draft: &Draft) -> bool {
    let network = crate::access::network(one.argument(0));
    let trusted = draft.general.get("trusted_proxies").and_then(toml::Value::as_array);
    trusted.is_some_and(|all| all.iter().any(|known| known.as_str() == network.as_deref()))
}

/// A server that only redirects to https.
fn https_redirect(server: &Directive) -> Option<&Directive> {
    let redirect = server.first("return")?;
    let is_whole = server.children.iter().all(|one| {
        ["listen", "server_name", "return", "access_log", "error_log", "root"]
            .contains(&one.name.as_str())
    });
    let to = redirect.argument(1);
    (is_whole && to.starts_with("https://") && to.ends_with("$request_uri")).then_some(redirect)
}

fn is_tls(listen: &Directive) -> bool {
    listen.arguments.iter().any(|one| one == "ssl" || one == "quic")
}

fn listen(server: &Directive, around: Surroundings<'_>, redirects: bool, draft: &mut Draft) {
    let find = |name: &str| {
        let own = server.first(name);
        own.or_else(|| around.general.iter().find(|one| one.name == name))
    };
    let certificate = find("ssl_certificate").zip(find("ssl_certificate_key"));
    let protocols = find("ssl_protocols").map(|one| one.arguments.join(" "));
    for listen in server.all("listen") {
        let address = match listen.argument(0) {
            port if port.bytes().all(|byte| byte.is_ascii_digit()) => format!("0.0.0.0:{port}"),
            other if other.starts_with("unix:") => other.to_owned(),
            other if other.starts_with("*:") => format!("0.0.0.0{}", &other[1..]),
            other if !other.contains(':') => format!("{other}:80"),
            other => other.to_owned(),
        };
        let is_tls = is_tls(listen);
        if is_tls && certificate.is_none() {
            draft.omit(listen, "there is no certificate for it");
        }
        let entry = draft.listeners.entry(address).or_default();
        entry.is_tls |= is_tls;
        entry.serves |= !redirects;
        entry.redirects |= redirects;
        entry.only_tls13 |= protocols.as_deref() == Some("TLSv1.3");
        if let Some((certificate, key)) = certificate.filter(|_| is_tls) {
            let pair = (certificate.argument(0).to_owned(), key.argument(0).to_owned());
            if !entry.certificates.contains(&pair) {
                entry.certificates.push(pair);
            }
        }
    }
}

/// A statement of a server, or of a location whose paths are `path`.
pub(super) fn general(one: &Directive, path: Option<&str>, app: &mut App, draft: &mut Draft) {
    match (one.name.as_str(), path) {
        ("root" | "ssl_certificate" | "ssl_certificate_key" | "ssl_protocols", _) => {}
        ("index", None) => app.set(
            "index",
            crate::draft::strings(
                one.arguments
                    .iter()
                    .filter(|name| !name.contains('$'))
                    .map(|name| name.trim_start_matches('/').to_owned()),
            ),
        ),
        ("client_max_body_size", None) => match size(one.argument(0)) {
            Some(size) if !size.starts_with("0 ") => app.set("limits.body", size),
            _ => draft.omit(one, "set limits.body to a size"),
        },
        ("gzip", None) => app.set("compress", one.argument(0) == "on"),
        ("fastcgi_read_timeout", None) => match seconds(one.argument(0)) {
            Some(time) => app.set("limits.request_deadline", time.max(1)),
            None => draft.omit(one, "set limits.request_deadline"),
        },
        ("add_header", _) => add_header(one, path, app, draft),
        ("expires", _) => expires(one, path, app, draft),
        ("error_page", None) => error_page(one, app, draft),
        ("return", None) => redirect(one, "^", app, draft),
        ("rewrite", _) => rewrite(one, one.argument(0), app, draft),
        ("ssl_verify_client", _) if one.argument(0) == "on" => {
            app.set("require_client_certificate", true);
            draft.omit(
                one,
                "each request is refused until `client_ca` of [[listen]] names the authorities",
            );
        }
        ("try_files", None) => location::try_files(one, one, app, draft),
        ("autoindex", None) => autoindex(one, "/**", app),
        ("set_real_ip_from", _) if is_trusted(one, draft) => {}
        _ => omit_unless_quiet(one, draft),
    }
}

/// For the directories of a pattern.
pub(super) fn autoindex(one: &Directive, pattern: &str, app: &mut App) {
    match one.argument(0) {
        "on" => app.push("static.autoindex", text(pattern)),
        _ => app.unlisted.push((one.clone(), pattern.to_owned())),
    }
}

fn add_header(one: &Directive, path: Option<&str>, app: &mut App, draft: &mut Draft) {
    let (name, value) = (one.argument(0), one.argument(1));
    if value.contains('$') {
        return draft.omit(one, "a header's value cannot have variables");
    }
    if value.is_empty() {
        return;
    }
    // nginx sends a second line beside that of `expires`; both hold.
    let action = if name.eq_ignore_ascii_case("cache-control") { "add" } else { "set" };
    app.header((path, one.argument(2) == "always"), action, name, value);
}

fn expires(one: &Directive, path: Option<&str>, app: &mut App, draft: &mut Draft) {
    let value = match one.argument(0) {
        "off" => return,
        "max" => "max-age=315360000".to_owned(),
        "epoch" | "-1" => "no-cache".to_owned(),
        text => match seconds(text) {
            Some(seconds) => format!("max-age={seconds}"),
            None => return draft.omit(one, "the time depends on the request or on the file"),
        },
    };
    match path {
        None => app.set("static.cache_control", value),
        Some(_) => app.header((path, false), "set", "Cache-Control", &value),
    }
}

fn error_page(one: &Directive, app: &mut App, draft: &mut Draft) {
    let Some((page, statuses)) = one.arguments.split_last() else { return };
    let is_file = page.starts_with('/') && !page.contains(['$', '?']) && !page.ends_with(".php");
    if !is_file || statuses.iter().any(|status| status.starts_with('=')) {
        return draft
            .omit(one, "an error page is a file below the root, with the status of the error");
    }
    for status in statuses {
        app.set_in("error_pages", status, text(page.trim_start_matches('/')));
    }
}

/// `return`, for the paths that `pattern` matches.
pub(super) fn redirect(one: &Directive, pattern: &str, app: &mut App, draft: &mut Draft) {
    let (status, to) = match one.argument(0).parse::<i64>() {
        Ok(status) => (status, one.argument(1)),
        Err(_) => (302, one.argument(0)),
    };
    if (400..600).contains(&status) && to.is_empty() {
        return app.rewrite(pattern, None, Some(status));
    }
    let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
    if !is_redirect && !to.contains('$') && (status == 200 || (400..600).contains(&status)) {
        return app.respond(pattern, status, to);
    }
    match to.strip_suffix("$request_uri") {
        Some(base) if is_redirect && !base.contains('$') && pattern == "^" => {
            app.rewrite("^(.*)$", Some(&format!("{base}$1")), Some(status));
        }
        // The query of the request is kept.
        _ if is_redirect
            && to.strip_suffix("$is_args$args").is_some_and(|to| !to.contains(['$', '?'])) =>
        {
            app.rewrite(pattern, to.strip_suffix("$is_args$args"), Some(status));
        }
        _ if is_redirect && !to.contains('$') => {
            app.rewrite(pattern, Some(&format!("{}?", to.trim_end_matches('?'))), Some(status));
        }
        _ => draft.omit(one, "the response has variables: write [[app.NAME.rewrite]]"),
    }
}

/// `rewrite`, for the paths that `pattern` matches.
pub(super) fn rewrite(one: &Directive, pattern: &str, app: &mut App, draft: &mut Draft) {
    let to = one.argument(1);
    let has_variables =
        to.split('$').skip(1).any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    if has_variables || !is_expressible(pattern) {
        return draft
            .omit(one, "the rule has variables or look-around: write [[app.NAME.rewrite]]");
    }
    let status = match one.argument(2) {
        "permanent" => Some(301),
        "redirect" => Some(302),
        _ if to.starts_with("http") => Some(302),
        _ => None,
    };
    if to.contains('?') && !to.ends_with('?') {
        draft.omit(one, "carried over, but the query string of the request is not appended");
    }
    app.rewrite(pattern, Some(to), status);
}
