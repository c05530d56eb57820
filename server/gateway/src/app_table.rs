//! [`AppTable`]: which app serves a host and a path.
//!
//! Built with each generation. Invariants: an exact host is before a wildcard, and a wildcard before apps
//! for any host; among those, a longer path is before a shorter one; an exact host costs a binary search,
//! however many apps there are.

use crate::app::App;
use outboard_config::HostPattern;
use std::cmp::{Ordering, Reverse};
use std::rc::Rc;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct AppTable {
    /// Sorted by name, in small letters.
    exact: Vec<(String, Vec<Rc<App>>)>,
    wildcards: Vec<(HostPattern, Rc<App>)>,
    any: Vec<Rc<App>>,
}

impl AppTable {
    pub(crate) fn new(apps: &[Rc<App>]) -> Self {
        let mut apps = apps.to_vec();
        apps.sort_by_key(|app| Reverse(app.config.path_prefix.len()));
        let mut table = Self::default();
        for app in apps {
            for host in &app.config.hosts {
                match host {
                    HostPattern::Exact(name) => table.add_exact(name, &app),
                    HostPattern::Wildcard(_) => table.wildcards.push((host.clone(), app.clone())),
                }
            }
            if app.config.hosts.is_empty() {
                table.any.push(app);
            }
        }
        table
    }

    fn add_exact(&mut self, name: &str, app: &Rc<App>) {
        let name = name.to_ascii_lowercase();
        match self.search(&name) {
            Ok(at) => self.exact[at].1.push(app.clone()),
            Err(at) => self.exact.insert(at, (name, vec![app.clone()])),
        }
    }

    fn search(&self, host: &str) -> Result<usize, usize> {
        self.exact.binary_search_by(|(name, _)| compare(name, host))
    }

    /// The app for a request. `host` has no port; letter case and a final dot do not matter.
    pub(crate) fn find(&self, host: &[u8], path: &[u8]) -> Option<&Rc<App>> {
        // A host that is not UTF-8 matches only apps without host names.
        let host = std::str::from_utf8(host).unwrap_or_default();
        let name = host.strip_suffix('.').unwrap_or(host);
        let exact = self.search(name).map_or(&[][..], |at| &self.exact[at].1);
        let wildcards = self.wildcards.iter().filter(|(pattern, _)| pattern.matches(host));
        let wildcards = wildcards.map(|(_, app)| app);
        exact.iter().chain(wildcards).chain(&self.any).find(|app| app.has_path(path))
    }
}

/// The order of a name in small letters and a host in any.
pub(crate) fn compare(name: &str, host: &str) -> Ordering {
    name.bytes().cmp(host.bytes().map(|byte| byte.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Site, in_loop};

    /// Apps with their keys, and requests with the app that serves them.
    fn expect(apps: &[(&str, &str)], requests: &[(&str, &str, Option<&str>)]) {
        let app = |(name, keys): &(&str, &str)| format!("[app.{name}]\nroot = \"www\"\n{keys}\n");
        let text: String = apps.iter().map(app).collect();
        let requests: Vec<_> = requests
            .iter()
            .map(|(host, path, name)| (host.to_string(), path.to_string(), name.map(str::to_owned)))
            .collect();
        in_loop(async move {
            let site = Site::with_config(&[], &text);
            let generation = site.gateway.generation();
            for (host, path, expected) in requests {
                let app = generation.app(host.as_bytes(), path.as_bytes());
                let name = app.map(|app| app.config.name.clone());
                assert_eq!(name, expected, "{host}{path}");
            }
            let other = generation.app(b"\xff", b"/").map(|app| app.config.hosts.len());
            assert_ne!(other, Some(1), "no host name is like this one");
        });
    }

    #[test]
    fn the_most_specific_app_serves_a_request() {
        expect(
            &[
                ("any", ""),
                ("wildcard", "hosts = [\"*.example.test\"]"),
                ("exact", "hosts = [\"www.example.test\"]"),
                ("below", "hosts = [\"www.example.test\"]\npath = \"/below\""),
            ],
            &[
                ("other.test", "/", Some("any")),
                ("", "/", Some("any")),
                ("example.test", "/", Some("any")),
                ("a.example.test", "/below", Some("wildcard")),
                ("www.example.test", "/", Some("exact")),
                ("WWW.Example.TEST.", "/", Some("exact")),
                ("www.example.test", "/below/a", Some("below")),
                ("www.example.test", "/belows", Some("exact")),
            ],
        );
    }

    #[test]
    fn a_wildcard_is_not_before_the_exact_host_of_another_app() {
        expect(
            &[
                ("first", "hosts = [\"a.test\", \"*.b.test\"]\npath = \"/long\""),
                ("second", "hosts = [\"x.b.test\"]"),
            ],
            &[
                ("x.b.test", "/long", Some("second")),
                ("y.b.test", "/long", Some("first")),
                ("y.b.test", "/", None),
                ("a.test", "/long/a", Some("first")),
            ],
        );
    }

    #[test]
    fn each_of_many_hosts_is_found() {
        let names: Vec<_> = (0..200).map(|number| format!("h{number}.test")).collect();
        let keys: Vec<_> = names.iter().map(|name| format!("hosts = [\"{name}\"]")).collect();
        let ids: Vec<_> = (0..200).map(|number| format!("app{number}")).collect();
        let apps: Vec<_> = ids.iter().zip(&keys).map(|(id, key)| (&**id, &**key)).collect();
        let requests: Vec<_> =
            names.iter().zip(&ids).map(|(name, id)| (&**name, "/", Some(&**id))).collect();
        expect(&apps, &requests);
    }
}
