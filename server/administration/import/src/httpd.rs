//! Configurations of Apache httpd: the parser, and the translator of virtual hosts.

mod access;
mod balancer;
mod parser;
mod rewrite;
mod section;

pub(crate) use parser::parse;

use crate::directive::{Directive, first};
use crate::draft::{App, Draft, Redirected, text};

/// Fills the draft from the statements of a file. Without a virtual host the file is one site.
pub(crate) fn translate(statements: &[Directive], draft: &mut Draft) {
    let statements = without_conditions(statements);
    let (hosts, general): (Vec<Directive>, Vec<Directive>) =
        statements.into_iter().partition(|one| one.name == "<virtualhost");
    if general.iter().any(|one| one.name == "documentroot") && hosts.is_empty() {
        return site(&general, &general, draft);
    }
    let (balancers, general): (Vec<Directive>, Vec<Directive>) =
        general.into_iter().partition(balancer::is_balancer);
    for one in &general {
        match one.name.as_str() {
            "listen" | "documentroot" | "servername" => {}
            _ => section::omit_unless_quiet(one, draft),
        }
    }
    for host in &hosts {
        listen(host, draft);
        let statements = [&host.children[..], &balancers].concat();
        site(&statements, &general, draft);
    }
}

/// `<IfModule>` and `<IfDefine>` are taken as true, except those for a module that is not there; the version is
/// 2.4.
fn without_conditions(statements: &[Directive]) -> Vec<Directive> {
    let mut all = Vec::new();
    for one in statements {
        let is_condition = ["<ifmodule", "<ifdefine", "<ifversion"].contains(&one.name.as_str());
        let mut children = without_conditions(&one.children);
        match is_condition {
            true if one.argument(0).starts_with('!') => {}
            true if one.name == "<ifversion" && !is_version(one) => {}
            true => all.append(&mut children),
            false => all.push(Directive { children, ..one.clone() }),
        }
    }
    all
}

/// Whether `<IfVersion OPERATOR VERSION>` holds for 2.4.
fn is_version(one: &Directive) -> bool {
    let (operator, version) = match one.arguments.as_slice() {
        [version] => ("=", version.as_str()),
        [operator, version, ..] => (operator.as_str(), version.as_str()),
        [] => return true,
    };
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let written = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match operator.trim_start_matches('!') {
        "<" => (2, 4) < written,
        "<=" => (2, 4) <= written,
        ">" => (2, 4) > written,
        ">=" => (2, 4) >= written,
        _ => (2, 4) == written,
    }
}

fn listen(host: &Directive, draft: &mut Draft) {
    // A redirect to another host is one of its own.
    let names = host
        .children
        .iter()
        .filter(|one| matches!(one.name.as_str(), "servername" | "serveralias"));
    let names: Vec<String> =
        names.flat_map(|one| &one.arguments).map(|name| name.to_ascii_lowercase()).collect();
    let is_own =
        |to: &str| names.iter().any(|name| to.strip_prefix("https://") == Some(name.as_str()));
    let redirects = redirects_to_https(&host.children)
        && host_redirect(&host.children).is_none_or(|(_, to, _)| is_own(&to));
    let is_tls = first(&host.children, "sslengine")
        .is_some_and(|one| one.argument(0).eq_ignore_ascii_case("on"));
    let files = first(&host.children, "sslcertificatefile")
        .zip(first(&host.children, "sslcertificatekeyfile"));
    if is_tls && files.is_none() {
        draft.omit(host, "there is no certificate and key for it");
    }
    for address in &host.arguments {
        let (ip, port) = address.rsplit_once(':').unwrap_or((address, "80"));
        let ip = if matches!(ip, "*" | "_default_") { "0.0.0.0" } else { ip };
        let entry = draft.listeners.entry(format!("{ip}:{port}")).or_default();
        entry.is_tls |= is_tls;
        entry.serves |= !redirects;
        entry.redirects |= redirects;
        if let Some((certificate, key)) = files.filter(|_| is_tls) {
            let pair = (certificate.argument(0).to_owned(), key.argument(0).to_owned());
            if !entry.certificates.contains(&pair) {
                entry.certificates.push(pair);
            }
        }
    }
}

/// Whether a host only redirects to https.
fn redirects_to_https(statements: &[Directive]) -> bool {
    let redirect = statements.iter().any(|one| {
        let to = one.arguments.last().map_or("", String::as_str);
        match one.name.as_str() {
            "redirect" | "redirectpermanent" => {
                to.starts_with("https://") && one.arguments.iter().any(|argument| argument == "/")
            }
            "rewriterule" => one.argument(1).starts_with("https://%{"),
            _ => false,
        }
    });
    let serves = statements.iter().any(|one| one.name.starts_with('<') || one.name == "proxypass");
    redirect && !serves
}

/// `general` is around it.
fn site(statements: &[Directive], general: &[Directive], draft: &mut Draft) {
    let mut app = App::default();
    for one in statements {
        match one.name.as_str() {
            "servername" => {
                let name = one.argument(0);
                let name = name.split_once("://").map_or(name, |(_, name)| name);
                app.hosts.push(name.split(':').next().unwrap_or_default().to_ascii_lowercase());
            }
            "serveralias" => {
                for name in &one.arguments {
                    let plain = name.strip_prefix("*.").unwrap_or(name);
                    match plain.contains(['*', '?']) {
                        true => draft.omit(one, "hosts are names or `*.name`"),
                        false => app.hosts.push(name.to_ascii_lowercase()),
                    }
                }
            }
            _ => {}
        }
    }
    if let Some((one, to, status)) = host_redirect(statements) {
        let hosts = app.hosts;
        return draft.redirected.push((one.clone(), Redirected { hosts, to, status }));
    }
    if redirects_to_https(statements) {
        return;
    }
    let Some(root) = first(statements, "documentroot") else {
        if let Some(one) = statements.first() {
            draft.omit(one, "a host without `DocumentRoot` is not an app");
        }
        return;
    };
    if draft.apps.iter().any(|other| other.hosts.iter().any(|host| app.hosts.contains(host)))
        || (app.hosts.is_empty() && draft.apps.iter().any(|other| other.hosts.is_empty()))
    {
        return draft.omit(root, "another host has the same names: merge the two");
    }
    app.set("root", text(root.argument(0).trim_end_matches('/')));
    app.set("front_controller", "none");
    let place =
        section::Place { root: root.argument(0), below: "/".to_owned(), is_directory: false };
    section::translate(statements, &place, &mut app, draft);
    log_format(statements, general, &mut app, draft);
    draft.apps.push(app);
}

/// `Redirect STATUS / SCHEME://HOST/` of a host that does nothing else.
fn host_redirect(statements: &[Directive]) -> Option<(&Directive, String, i64)> {
    let one = statements
        .iter()
        .find(|one| matches!(one.name.as_str(), "redirect" | "redirectpermanent"))?;
    let serves = |one: &Directive| {
        one.name.starts_with('<') || one.name == "proxypass" || one.name.starts_with("rewriterule")
    };
    let (status, rest) = match (one.name.as_str(), one.arguments.as_slice()) {
        ("redirectpermanent", rest) => (301, rest),
        (_, [status, rest @ ..]) if rest.len() == 2 => (
            match status.to_ascii_lowercase().as_str() {
                "permanent" => 301,
                "temp" => 302,
                number => number.parse().ok()?,
            },
            rest,
        ),
        (_, rest) => (302, rest),
    };
    let [path, to] = rest else { return None };
    let host =
        to.strip_suffix('/')?.split_once("://").filter(|(scheme, _)| scheme.starts_with("http"))?.1;
    let is_plain = path == "/" && !host.is_empty() && !host.contains(['/', '%', '$', '?']);
    let has_names = first(statements, "servername").is_some();
    let is_whole =
        !statements.iter().any(serves) && has_names && matches!(status, 301 | 302 | 307 | 308);
    (is_plain && is_whole).then(|| (one, to.trim_end_matches('/').to_ascii_lowercase(), status))
}

/// The format that `CustomLog` names or has.
fn log_format(statements: &[Directive], general: &[Directive], app: &mut App, draft: &mut Draft) {
    let Some(log) = first(statements, "customlog").or(first(general, "customlog")) else { return };
    let name = log.argument(1);
    if ["", "combined", "vhost_combined"].contains(&name) {
        return;
    }
    let all = statements.iter().chain(general);
    let mut named = all.filter(|one| one.name == "logformat" && one.argument(1) == name);
    let (one, format) = match named.next() {
        Some(one) => (one, one.argument(0)),
        None if name.contains('%') => (log, name),
        None => return,
    };
    match crate::log_format::of_httpd(format) {
        Some(format) => app.set("log.access.format", text(&format)),
        None => draft.omit(one, "a part of it has no field: write log.access.format"),
    }
}
