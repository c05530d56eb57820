//! [`Redirects`]: which hosts are redirected to another host.
//!
//! Built with each generation, which dispatch asks before it looks for an app. Invariants: of a redirect and an app, the
//! one that names the host more closely responds; an exact host costs a binary search, however many there are.

use crate::app::App;
use crate::app_table;
use outboard_config::{HostPattern, Redirect};
use std::cmp::Reverse;

/// See the module. Redirects are named by their index in the configuration.
#[derive(Debug, Default)]
pub(crate) struct Redirects {
    /// Sorted by name, in small letters.
    exact: Vec<(String, usize)>,
    /// The longest first.
    wildcards: Vec<(HostPattern, usize)>,
}

impl Redirects {
    pub(crate) fn new(redirects: &[Redirect]) -> Self {
        let mut table = Self::default();
        for (index, redirect) in redirects.iter().enumerate() {
            for host in &redirect.hosts {
                match host {
                    HostPattern::Exact(name) => table.exact.push((name.clone(), index)),
                    HostPattern::Wildcard(_) => table.wildcards.push((host.clone(), index)),
                }
            }
        }
        table.exact.sort_unstable();
        table.wildcards.sort_by_key(|(host, _)| match host {
            HostPattern::Exact(name) | HostPattern::Wildcard(name) => Reverse(name.len()),
        });
        table
    }

    /// The redirect of a host without a port; `app` finds the app that would respond otherwise.
    pub(crate) fn find<'a>(
        &self,
        host: &[u8],
        app: impl FnOnce() -> Option<&'a App>,
    ) -> Option<usize> {
        // A host that is not UTF-8 matches no name.
        let host = std::str::from_utf8(host).ok()?;
        let (index, precision) = self.closest(host)?;
        let is_closer = |pattern: &HostPattern| pattern.precision(host) > precision;
        let is_of_app = app().is_some_and(|app| app.config.hosts.iter().any(is_closer));
        (!is_of_app).then_some(index)
    }

    /// The redirect that names a host most closely, and how closely.
    fn closest(&self, host: &str) -> Option<(usize, usize)> {
        let name = host.strip_suffix('.').unwrap_or(host);
        if let Ok(at) = self.exact.binary_search_by(|(own, _)| app_table::compare(own, name)) {
            return Some((self.exact[at].1, usize::MAX));
        }
        let (pattern, index) = self.wildcards.iter().find(|(pattern, _)| pattern.matches(host))?;
        Some((*index, pattern.precision(host)))
    }
}

#[cfg(test)]
mod tests;
