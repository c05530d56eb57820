//! Hosts whose requests are redirected to another host.
//!
//! Called with the listeners and apps of the file, because each host has one of them. Invariants: the target is a
//! scheme and a host, and what a client requests cannot become a part of it; no redirect leads back to itself.

use super::app::App;
use super::context::Context;
use super::listen::Listener;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, HostPattern, Scalar, Written};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The hosts; at least one, and none is an app's.
    pub hosts: Vec<HostPattern>,
    /// Scheme and host, in small letters, without a path.
    pub to: String,
    /// 301, 302, 307 or 308.
    pub status: u16,
}

impl Redirect {
    /// The host that it leads to, and whether that is with TLS.
    fn target(&self) -> (bool, &str) {
        let (scheme, authority) = self.to.split_once("://").unwrap_or_default();
        (scheme == "https", host_and_port(authority).0)
    }
}

pub(super) fn redirects(
    raw: &raw::File,
    listeners: &[Listener],
    apps: &[App],
    context: &mut Context<'_>,
) -> Vec<Redirect> {
    let mut all: Vec<Redirect> = Vec::new();
    for (index, written) in raw.redirect.iter().enumerate() {
        let index = index.to_string();
        let at = |key: &'static str| ["redirect", index.as_str(), key];
        let to = origin(&written.to.0).unwrap_or_else(|fault| {
            context.value(&at("to"), Kind::BadValue, fault);
            String::new()
        });
        if !matches!(written.status, 301 | 302 | 307 | 308) {
            let fault = Fault::new(format!("{} does not redirect to another host", written.status))
                .hint("write 301, 302, 307 or 308");
            context.value(&at("status"), Kind::BadValue, fault);
        }
        let hosts = written.hosts.as_slice().to_vec();
        if hosts.is_empty() {
            let fault = Fault::new("`hosts` is empty: nothing would be redirected");
            context.value(&at("hosts"), Kind::BadValue, fault.hint("name the hosts"));
        }
        report_claimed(&hosts, &all, apps, &at("hosts"), context);
        all.push(Redirect { hosts, to, status: written.status });
    }
    for index in 0..all.len() {
        if !all[index].to.is_empty() && leads_back(index, &all, listeners, apps) {
            let fault = Fault::new(format!("`{}` leads back to this redirect", all[index].to))
                .hint("redirect to a host of an app, which is not in `hosts` of any redirect");
            let place = ["redirect", &index.to_string(), "to"];
            context.value(&place, Kind::Conflict, fault);
        }
    }
    all
}

/// Reads `scheme://host` or `scheme://host:port`.
fn origin(text: &str) -> Result<String, Fault> {
    let lower = text.to_ascii_lowercase();
    let bad = |hint| Fault::new(format!("`{text}` is not a scheme and a host")).hint(hint);
    let expected = "write \"https://example.org\"";
    let of_scheme = ["https://", "http://"].iter().find_map(|start| lower.strip_prefix(start));
    let authority = of_scheme.ok_or_else(|| bad(expected))?;
    if authority.contains(['/', '?', '#']) {
        return Err(bad(
            "write it without a path: the path and the query of the request are added",
        ));
    }
    let (host, port) = host_and_port(authority);
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse().is_ok_and(|port: u16| port > 0)
    };
    let is_host = matches!(HostPattern::read(Written::Text(host)), Ok(HostPattern::Exact(_)));
    match is_host && port.is_none_or(is_port) {
        true => Ok(lower),
        false => Err(bad(expected)),
    }
}

fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// A host has one app or redirect: which one responds would be undefined.
fn report_claimed(
    hosts: &[HostPattern],
    earlier: &[Redirect],
    apps: &[App],
    place: &[&str],
    context: &mut Context<'_>,
) {
    for host in hosts {
        let app = apps.iter().find(|app| app.hosts.contains(host));
        let redirect = earlier.iter().position(|other| other.hosts.contains(host));
        let index = redirect.unwrap_or_default().to_string();
        let (owner, other) = match (app, redirect) {
            (Some(app), _) => (format!("the app `{}`", app.name), ["app", &app.name, "hosts"]),
            (None, Some(_)) => ("another redirect".to_owned(), ["redirect", &index, "hosts"]),
            (None, None) => continue,
        };
        let line = context.line_of(&other);
        let fault = Fault::new(format!("`{}` is also a host of {owner}{line}", host.write()))
            .hint("remove it from one of them");
        context.value(place, Kind::Duplicate, fault);
    }
}

/// Whether a client that follows a redirect comes to it again.
fn leads_back(first: usize, all: &[Redirect], listeners: &[Listener], apps: &[App]) -> bool {
    let mut at = first;
    // A longer way has a redirect twice.
    for _ in 0..all.len() {
        let (is_https, host) = all[at].target();
        // Behind a proxy, a listener has requests of both schemes.
        let has_scheme =
            |one: &Listener| one.is_encrypted() == is_https || one.forwarding.has_proxies();
        let next = all.iter().position(|one| responds(one, host, all, apps));
        match next.filter(|_| listeners.iter().any(has_scheme)) {
            Some(next) if next == first => return true,
            Some(next) => at = next,
            None => return false,
        }
    }
    false
}

/// Whether no app and no other redirect names the host more closely.
fn responds(one: &Redirect, host: &str, all: &[Redirect], apps: &[App]) -> bool {
    let precision = |hosts: &[HostPattern]| {
        hosts.iter().map(|pattern| pattern.precision(host)).max().unwrap_or_default()
    };
    let own = precision(&one.hosts);
    let mut others = apps.iter().map(|app| &app.hosts).chain(all.iter().map(|other| &other.hosts));
    own > 0 && others.all(|hosts| precision(hosts) <= own)
}

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, valid};
    use crate::{Kind, Redirect};

    fn redirects(keys: &str) -> Vec<Redirect> {
        valid(&format!("{APP}{keys}")).redirects
    }

    #[test]
    fn a_redirect_has_hosts_a_target_and_a_status() {
        let all = redirects(
            "[[redirect]]\nhosts = \"WWW.shop.test\"\nto = \"https://Shop.test:8443\"\n\
             [[redirect]]\nhosts = [\"*.old.test\"]\nto = \"http://[2001:db8::1]\"\nstatus = 308\n",
        );
        assert_eq!((all[0].to.as_str(), all[0].status), ("https://shop.test:8443", 301));
        assert_eq!((all[1].to.as_str(), all[1].status), ("http://[2001:db8::1]", 308));
        assert_eq!(all[0].target(), (true, "shop.test"));
        assert_eq!(all[1].target(), (false, "[2001:db8::1]"));
    }

    #[test]
    fn invalid_targets_statuses_and_hosts_are_refused() {
        let text = |keys: &str| format!("{APP}[[redirect]]\n{keys}");
        for (to, words) in [
            ("shop.test", "write \"https://example.org\""),
            ("ftp://shop.test", "write \"https://example.org\""),
            ("https://", "is not a scheme and a host"),
            ("https://*.shop.test", "is not a scheme and a host"),
            ("https://user@shop.test", "is not a scheme and a host"),
            ("https://shop.test:0", "is not a scheme and a host"),
            ("https://shop.test:+1", "is not a scheme and a host"),
            ("https://shop.test:", "is not a scheme and a host"),
            ("https://a\\r\\nX: 1", "is not a scheme and a host"),
            ("https://shop.test/", "without a path"),
            ("https://shop.test?a", "without a path"),
        ] {
            let keys = format!("hosts = \"a.test\"\nto = \"{to}\"\n");
            assert_error(&text(&keys), Kind::BadValue, 5, words);
        }
        let to = "to = \"https://b.test\"\n";
        let status = format!("hosts = \"a.test\"\n{to}status = 304\n");
        assert_error(&text(&status), Kind::BadValue, 6, "write 301, 302, 307 or 308");
        assert_error(&text(&format!("hosts = []\n{to}")), Kind::BadValue, 4, "is empty");
    }

    #[test]
    fn a_host_of_an_app_or_of_two_redirects_is_refused() {
        let redirect =
            |host: &str| format!("[[redirect]]\nhosts = \"{host}\"\nto = \"http://x.example\"\n");
        let app = format!("{APP}hosts = [\"a.test\", \"*.b.test\"]\n");
        for host in ["a.test", "A.test.", "*.b.test"] {
            let text = format!("{app}{}", redirect(host));
            assert_error(&text, Kind::Duplicate, 5, "a host of the app `site` (line 3)");
        }
        let two = format!("{APP}{}{}", redirect("a.test"), redirect("a.test"));
        assert_error(&two, Kind::Duplicate, 7, "a host of another redirect (line 4)");
        valid(&format!("{app}{}{}", redirect("*.test"), redirect("c.b.test")));
    }

    #[test]
    fn redirects_that_lead_back_are_refused() {
        let redirect =
            |host: &str, to: &str| format!("[[redirect]]\nhosts = [\"{host}\"]\nto = \"{to}\"\n");
        let site = format!("{APP}hosts = \"www.shop.test\"\n");
        let own = site.clone() + &redirect("a.test", "http://a.test:81");
        assert_error(&own, Kind::Conflict, 6, "leads back to this redirect");
        let wildcard = site.clone() + &redirect("*.shop.test", "http://a.shop.test");
        assert_error(&wildcard, Kind::Conflict, 6, "leads back to this redirect");
        let circle = site.clone()
            + &redirect("a.test", "http://b.test")
            + &redirect("b.test", "http://c.test")
            + &redirect("c.test", "http://a.test");
        assert_error(&circle, Kind::Conflict, 12, "leads back to this redirect");
        let proxied = format!("trusted_proxies = [\"10.0.0.1\"]\n{site}");
        let proxied = proxied + &redirect("a.test", "https://a.test");
        assert_error(&proxied, Kind::Conflict, 7, "leads back to this redirect");
        // Another server has TLS, or an app names the host more closely.
        valid(&(site.clone() + &redirect("a.test", "https://a.test")));
        valid(&(site.clone() + &redirect("*.shop.test", "http://www.shop.test")));
        let chain =
            redirect("a.test", "http://b.test") + &redirect("b.test", "http://www.shop.test");
        valid(&(site + &chain));
    }

    #[test]
    fn workers_respond_directly_only_without_redirects() {
        let text = "[app.site]\nroot = \"public\"\nmode = \"worker\"\nworker.script = \"w.php\"\n\
                    worker.direct = true\n";
        let redirect = "[[redirect]]\nhosts = \"a.test\"\nto = \"https://b.test\"\n";
        assert!(valid(text).apps[0].has_direct());
        assert_error(&format!("{text}{redirect}"), Kind::Conflict, 5, "because of `redirect`");
    }
}
