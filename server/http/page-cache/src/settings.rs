//! The settings of an app's page cache, in the form that the rules use.
//!
//! Created when a generation starts. The only access to the system is to recognise applications by the
//! files in the app's root.

use crate::freshness::Policy;
use crate::pattern::NamePattern;
use crate::preset::Preset;
use crate::request_facts::BypassRules;
use outboard_config::{App, Forwarding, PageCache};

/// See the module.
#[derive(Debug)]
pub struct Settings {
    /// Lifetimes and sizes.
    pub policy: Policy,
    /// Requests that do not use the cache.
    pub rules: BypassRules,
    /// The names of the presets in use.
    pub presets: Vec<&'static str>,
    /// Whether pages are compressed.
    pub compresses: bool,
    /// How long a request waits for another one that renders the same page.
    pub lock_timeout_ms: u64,
    /// The peers that may send `PURGE`.
    pub purge_from: Forwarding,
    /// Whether a page can be rendered again without the connection that requested it.
    pub refreshes_in_background: bool,
}

impl Settings {
    /// The settings of an app with this page cache.
    pub fn new(app: &App, configured: &PageCache) -> Self {
        let presets: Vec<&'static Preset> = match &configured.presets {
            None => Preset::recognised(|file| app.root.join(file).exists()).collect(),
            Some(names) => {
                let named = names.iter().filter_map(|name| Preset::named(name));
                Preset::named("generic").into_iter().chain(named).collect()
            }
        };
        let mut rules = BypassRules::of(presets.iter().copied());
        let patterns = |texts: &[String]| -> Vec<NamePattern> {
            texts.iter().map(|text| NamePattern::new(text)).collect()
        };
        rules.cookies.login.extend(patterns(&configured.login_cookies));
        rules.cookies.ignored.extend(patterns(&configured.ignored_cookies));
        rules.ignored_fields.extend(patterns(&configured.ignored_headers));
        rules.bypass_paths.extend(patterns(&configured.bypass_paths));
        let policy = Policy {
            default_ttl_s: configured.default_ttl_s,
            // Last-Modified says little about a page: a page with nothing else has no lifetime.
            heuristic_max_s: 0,
            stale_while_revalidate_s: configured.stale_while_revalidate_s,
            stale_if_error_s: configured.stale_if_error_s,
            honors_client_cache_control: configured.honors_client_cache_control,
            body_max_bytes: usize::try_from(configured.max_body_bytes).unwrap_or(usize::MAX),
            ..Policy::STANDARD
        };
        Self {
            policy,
            rules,
            presets: presets.iter().map(|preset| preset.name).collect(),
            compresses: configured.compresses,
            lock_timeout_ms: configured.lock_timeout_ms,
            purge_from: configured.purge_from.clone(),
            refreshes_in_background: app.prefetch.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::preset::PRESETS;
    use outboard_config::PRESET_NAMES;

    #[test]
    fn the_configuration_has_the_names_of_all_presets() {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names[0], "generic");
        assert_eq!(names[1..], PRESET_NAMES);
    }
}
