//! Configurations of Apache httpd: the parser, and the translator of virtual hosts.

mod access;
mod balancer;
mod parser;
mod rewrite;
mod section;

pub(crate) use parser::parse;

use crate::directive::{Directive, first};
use crate::draft::{App, Draft, text};

/// Fills the draft from the statements of a file. Without a virtual host the file is one site.
pub(crate) fn translate(statements: &[Directive], draft: &mut Draft) {
    let statements = without_conditions(statements);
    let (hosts, general): (Vec<Directive>, Vec<Directive>) =
        statements.into_iter().partition(|one| one.name == "<virtualhost");
    if general.iter().any(|one| one.name == "documentroot") && hosts.is_empty() {
        return site(&general, draft);
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
        site(&statements, draft);
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
    let redirects = redirects_to_https(&host.children);
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

fn site(statements: &[Directive], draft: &mut Draft) {
    if redirects_to_https(statements) {
        return;
    }
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
    draft.apps.push(app);
}
