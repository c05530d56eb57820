//! Certificates that the server obtains itself.

use super::app::App;
use super::context::Context;
use super::listen::{Listener, Protocol};
use super::page_cache_shared::{self, PageCacheShared};
use super::redirect::Redirect;
use crate::diagnostic::Kind;
use crate::raw::{self, Challenge, ExternalAccount};
use crate::scalar::{Fault, HostPattern};
use std::path::PathBuf;

/// How the server obtains certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acme {
    /// The names that get a certificate, in lower case; a wildcard begins with `*.`.
    pub names: Vec<String>,
    /// The address that an authority may write to.
    pub email: Option<String>,
    /// The authorities; a further one is used when those before it fail. At least one.
    pub authorities: Vec<Authority>,
    /// Directory of accounts, keys and certificates; `None`: that of the server's user.
    pub storage: Option<PathBuf>,
    /// Additional authorities that are trusted for connections to the authorities.
    pub ca: Option<PathBuf>,
    /// Credentials for a new account at the first authority.
    pub external_account: Option<ExternalAccount>,
    /// How authorities can check names, the preferred way first.
    pub challenges: Vec<Challenge>,
    /// The program that publishes DNS records.
    pub dns_hook: Option<PathBuf>,
    /// The URL that decides on other names.
    pub ask: Option<String>,
    /// The profile of the authority.
    pub profile: Option<String>,
    /// Maximum number of orders at one authority within 3 hours.
    pub max_orders: u32,
    /// Maximum number of orders for one name within a week.
    pub max_orders_per_name: u32,
    /// The server through which gateways share certificates.
    pub shared: Option<PageCacheShared>,
}

/// A certificate authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The URL of its ACME directory.
    Acme(String),
    /// The local authority for development.
    Local,
}

/// Whether only the local authority can issue a certificate for this name (RFC 6761 6.3).
pub fn is_local_name(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Prefix of the keys of shared certificates.
const SHARED_NAME: &str = "certificates";
/// How long a gateway waits for the server with shared certificates.
const SHARED_TIMEOUT_MS: u64 = 5_000;

/// `None` if no listener uses it.
pub(super) fn acme(
    raw: &raw::File,
    listeners: &[Listener],
    hosts_of: (&[App], &[Redirect]),
    context: &mut Context<'_>,
) -> Option<Acme> {
    let table = &raw.acme;
    if !listeners.iter().any(|listener| listener.obtains_certificates) {
        if context.places.wrote(&["acme", "domains"]) {
            let fault = Fault::new("no listener uses certificates for these names");
            context.key(
                &["acme", "domains"],
                Kind::BadValue,
                fault.hint("add tls = \"auto\" to a listener"),
            );
        }
        return None;
    }
    let names = names(table, listeners, hosts_of, context);
    let authorities = authorities(table, context);
    let needs_terms = authorities.iter().any(|one| *one != Authority::Local)
        && (table.ask.is_some() || !names.iter().all(|name| is_local_name(name)));
    if needs_terms && !table.terms_agreed {
        let fault = Fault::new("the authority requires agreement to its terms of service")
            .hint("read them, and write terms_agreed = true in [acme]");
        context.key(&["acme", "terms_agreed"], Kind::MissingKey, fault);
    }
    let ask = table.ask.as_ref().map(|url| url.0.clone());
    if ask.as_ref().is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
        let fault = Fault::new("this is not a URL").hint("write http://… or https://…");
        context.value(&["acme", "ask"], Kind::BadValue, fault);
    }
    Some(Acme {
        challenges: challenges(table, listeners, context),
        names,
        email: table.email.as_ref().map(|email| email.0.clone()),
        authorities,
        storage: table.storage.as_ref().map(|path| context.absolute(path)),
        ca: table.ca.as_ref().map(|path| context.file(&["acme", "ca"], path)),
        external_account: table.external_account.clone(),
        dns_hook: table.dns_hook.as_ref().map(|path| context.program(&["acme", "dns_hook"], path)),
        ask,
        profile: table.profile.as_ref().map(|profile| profile.0.clone()),
        max_orders: table.max_orders,
        max_orders_per_name: table.max_orders_per_name,
        shared: shared(table.shared.as_ref(), context),
    })
}

fn names(
    table: &raw::Acme,
    listeners: &[Listener],
    (apps, redirects): (&[App], &[Redirect]),
    context: &mut Context<'_>,
) -> Vec<String> {
    let hosts = apps.iter().map(|app| &app.hosts).chain(redirects.iter().map(|one| &one.hosts));
    let patterns: Vec<HostPattern> =
        table.domains.clone().unwrap_or_else(|| hosts.flatten().cloned().collect());
    let mut names = Vec::new();
    for pattern in patterns {
        let name = match pattern {
            HostPattern::Wildcard(above) if table.dns_hook.is_some() => format!("*.{above}"),
            // Each name below it is approved on its own.
            HostPattern::Wildcard(_) if table.domains.is_none() && table.ask.is_some() => continue,
            HostPattern::Wildcard(above) => {
                let fault = Fault::new(format!(
                    "a certificate for `*.{above}` needs a check by DNS, which needs `dns_hook`"
                ));
                let hint = "add `dns_hook` or `ask` to [acme], or list `domains`";
                context.key(&["acme"], Kind::MissingKey, fault.hint(hint));
                continue;
            }
            // Authorities issue certificates for names.
            HostPattern::Exact(name) if name.parse::<std::net::IpAddr>().is_ok() => continue,
            HostPattern::Exact(name) if name.starts_with('[') => continue,
            HostPattern::Exact(name) => name,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() && table.ask.is_none() {
        let fault = Fault::new("there is no name to obtain a certificate for")
            .hint("add `hosts` to the apps, or `domains` to [acme]");
        let of_it = listeners.iter().position(|one| one.obtains_certificates).unwrap_or_default();
        match context.places.wrote(&["acme"]) {
            true => context.key(&["acme"], Kind::MissingKey, fault),
            false => context.value(&["listen", &of_it.to_string(), "tls"], Kind::MissingKey, fault),
        }
    }
    names
}

fn authorities(table: &raw::Acme, context: &mut Context<'_>) -> Vec<Authority> {
    let mut authorities = Vec::new();
    for written in table.directory.as_slice() {
        authorities.push(match written.0.as_str() {
            "local" => Authority::Local,
            url if url.starts_with("https://") => Authority::Acme(url.to_owned()),
            other => {
                let fault = Fault::new(format!("`{other}` is not the URL of a directory"))
                    .hint("write https://…, or \"local\"");
                context.value(&["acme", "directory"], Kind::BadValue, fault);
                continue;
            }
        });
    }
    if authorities.is_empty() && table.directory.as_slice().is_empty() {
        let fault = Fault::new("`directory` is empty: no authority would issue a certificate");
        context.value(&["acme", "directory"], Kind::BadValue, fault);
    }
    authorities
}

/// Those that are configured, or those that the listeners permit.
fn challenges(
    table: &raw::Acme,
    listeners: &[Listener],
    context: &mut Context<'_>,
) -> Vec<Challenge> {
    if let Some(written) = &table.challenges {
        if written.is_empty() || (written.contains(&Challenge::Dns01) && table.dns_hook.is_none()) {
            let fault = Fault::new("authorities could not check any name in these ways")
                .hint("`dns-01` needs `dns_hook`");
            context.value(&["acme", "challenges"], Kind::BadValue, fault);
        }
        return written.clone();
    }
    let of_http = |one: &&Listener| one.protocol == Protocol::Http;
    let has_plain = listeners.iter().filter(of_http).any(|one| !one.is_encrypted());
    let has_tls = listeners.iter().any(|one| {
        one.obtains_certificates && one.clients.as_ref().is_none_or(|all| !all.are_required)
    });
    [
        (Challenge::Http01, has_plain),
        (Challenge::TlsAlpn01, has_tls),
        (Challenge::Dns01, table.dns_hook.is_some()),
    ]
    .into_iter()
    .filter_map(|(challenge, is_possible)| is_possible.then_some(challenge))
    .collect()
}

fn shared(raw: Option<&raw::AcmeShared>, context: &mut Context<'_>) -> Option<PageCacheShared> {
    let raw = raw?;
    match page_cache_shared::read(&raw.server.0) {
        Ok(server) => Some(PageCacheShared {
            name: raw.name.as_ref().map_or(SHARED_NAME, |name| &name.0).to_owned(),
            timeout_ms: SHARED_TIMEOUT_MS,
            ..server
        }),
        Err(fault) => {
            context.value(&["acme", "shared", "server"], Kind::BadValue, fault);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use std::path::Path;

    fn parsed(acme: &str, app: &str) -> Result<Config, String> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = format!(
            "[[listen]]\naddress = \"[::1]:1\"\n[[listen]]\naddress = \"[::1]:2\"\ntls = \"auto\"\n\
             [acme]\n{acme}\n[app.site]\nroot = \"src\"\n{app}\n"
        );
        Config::parse(&text, &directory.join("outboard.toml")).map_err(|errors| errors.to_string())
    }

    const HOSTS: &str = "hosts = [\"example.org\", \"www.example.org\", \"127.0.0.1\"]";
    const AGREED: &str = "terms_agreed = true";

    #[test]
    fn the_names_are_those_of_the_apps_or_of_domains() {
        let acme = parsed(AGREED, HOSTS).unwrap().acme.unwrap();
        assert_eq!(acme.names, ["example.org", "www.example.org"]);
        assert_eq!(acme.challenges, [Challenge::Http01, Challenge::TlsAlpn01]);
        let redirect = "[[redirect]]\nhosts = \"old.test\"\nto = \"https://example.org\"\n";
        let acme = parsed(AGREED, &format!("{HOSTS}\n{redirect}")).unwrap().acme.unwrap();
        assert_eq!(acme.names, ["example.org", "www.example.org", "old.test"]);
        let own = format!("{AGREED}\ndomains = [\"a.test\", \"a.test\"]");
        assert_eq!(parsed(&own, HOSTS).unwrap().acme.unwrap().names, ["a.test"]);
    }

    #[test]
    fn terms_are_agreed_to_before_an_authority_issues_a_certificate() {
        assert!(parsed("", HOSTS).unwrap_err().contains("terms_agreed = true"));
        assert!(parsed("directory = \"local\"", HOSTS).is_ok());
        assert!(parsed("", "hosts = \"site.localhost\"").is_ok());
    }

    #[test]
    fn what_cannot_be_obtained_is_an_error() {
        assert!(parsed(AGREED, "").unwrap_err().contains("no name"));
        let wildcard = "hosts = \"*.example.org\"";
        assert!(parsed(AGREED, wildcard).unwrap_err().contains("dns_hook"));
        let ask = format!("{AGREED}\nask = \"http://127.0.0.1/ask\"");
        assert_eq!(parsed(&ask, wildcard).unwrap().acme.unwrap().names, [""; 0]);
        let plain = format!("{AGREED}\ndirectory = \"http://a.test\"");
        assert!(parsed(&plain, HOSTS).unwrap_err().contains("not the URL of a directory"));
        let no_hook = format!("{AGREED}\nchallenges = [\"dns-01\"]");
        assert!(parsed(&no_hook, HOSTS).unwrap_err().contains("needs `dns_hook`"));
    }

    #[test]
    fn domains_without_a_listener_are_an_error() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "[acme]\ndomains = [\"a.test\"]\n[app.site]\nroot = \"src\"\n";
        let errors = Config::parse(text, &directory.join("outboard.toml")).unwrap_err();
        assert!(errors.to_string().contains("no listener uses"), "{errors}");
    }
}
