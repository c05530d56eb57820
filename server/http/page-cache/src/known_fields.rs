//! The known fields of requests and their meaning to pages.
//!
//! Called for every request of an app with a cache, so names are grouped by their length. Invariant:
//! an unlisted field may identify a visitor (a key, a token, a tenant), so its request shares only
//! pages that state a lifetime.

use crate::pattern::NamePattern;
use std::sync::LazyLock;

/// Fields that do not identify a visitor and do not change a page.
const IMPERSONAL: &[&[&str]] = &[
    // Browsers and crawlers. Client hints and Fetch metadata are below.
    &[
        "accept-encoding",
        "alt-used",
        "dnt",
        "from",
        "priority",
        "purpose",
        "referer",
        "sec-gpc",
        "sec-purpose",
        "upgrade-insecure-requests",
        "x-moz",
        "x-purpose",
    ],
    // These have rules of their own.
    &["authorization", "cookie"],
    // The connection and the message.
    &[
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "max-forwards",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
    ],
    // Requirements on a cache.
    &[
        "cache-control",
        "early-data",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "pragma",
        "range",
    ],
    // The address of the visitor, by which pages do not vary, and proxies on the way.
    &[
        "akamai-origin-hop",
        "cdn-loop",
        "cf-connecting-ip",
        "cf-connecting-ipv6",
        "cf-ew-via",
        "cf-pseudo-ipv4",
        "cf-ray",
        "cf-worker",
        "fastly-client-ip",
        "fastly-ff",
        "true-client-ip",
        "x-arr-log-id",
        "x-azure-clientip",
        "x-azure-fdid",
        "x-azure-ref",
        "x-azure-requestchain",
        "x-azure-socketip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-envoy-attempt-count",
        "x-envoy-expected-rq-timeout-ms",
        "x-envoy-external-address",
        "x-envoy-internal",
        "x-fd-healthprobe",
        "x-forwarded-by",
        "x-forwarded-for",
        "x-original-forwarded-for",
        "x-proxyuser-ip",
        "x-real-ip",
        "x-sucuri-clientip",
        "x-varnish",
    ],
    // Traces, which differ with each request.
    &[
        "b3",
        "newrelic",
        "sentry-trace",
        "traceparent",
        "tracestate",
        "uber-trace-id",
        "x-amz-cf-id",
        "x-amzn-trace-id",
        "x-b3-flags",
        "x-b3-parentspanid",
        "x-b3-sampled",
        "x-b3-spanid",
        "x-b3-traceid",
        "x-cloud-trace-context",
        "x-correlation-id",
        "x-datadog-origin",
        "x-datadog-parent-id",
        "x-datadog-sampling-priority",
        "x-datadog-tags",
        "x-datadog-trace-id",
        "x-queue-start",
        "x-request-id",
        "x-request-start",
        "x-trace-id",
    ],
];

/// The fields that an implicit page, which states no lifetime, varies by without Vary, because
/// applications look at them.
pub const IMPLICIT_VARY: [&str; 3] = ["accept", "accept-language", "user-agent"];

/// More such fields, which few requests have.
pub const RARE_IMPLICIT_VARY: [&str; 9] = [
    "cf-ipcountry",
    "cloudfront-viewer-country",
    "origin",
    "save-data",
    "x-country-code",
    "x-geo-country",
    "x-geoip-country",
    "x-sucuri-country",
    "x-vercel-ip-country",
];

/// Fields by which frameworks override the URL or the method, or send a part of the page. Every
/// response varies by them; otherwise a client could store a page with links to a host of its choice,
/// or a fragment, for others (cache poisoning).
pub const OVERRIDES: [&str; 48] = [
    // Host, scheme, path, method.
    "cf-visitor",
    "cloudfront-forwarded-proto",
    "fastly-ssl",
    "forwarded",
    "front-end-https",
    "x-arr-ssl",
    "x-envoy-original-path",
    "x-forwarded-host",
    "x-forwarded-method",
    "x-forwarded-path",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-protocol",
    "x-forwarded-scheme",
    "x-forwarded-server",
    "x-forwarded-ssl",
    "x-forwarded-uri",
    "x-host",
    "x-http-method",
    "x-http-method-override",
    "x-https",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-proto",
    "x-original-url",
    "x-rewrite-url",
    "x-scheme",
    "x-script-name",
    "x-url-scheme",
    // Parts of pages.
    "datastar-request",
    "hx-boosted",
    "hx-history-restore-request",
    "hx-request",
    "hx-target",
    "turbo-frame",
    "x-alpine-target",
    "x-inertia",
    "x-inertia-partial-component",
    "x-inertia-partial-data",
    "x-inertia-partial-except",
    "x-inertia-version",
    "x-livewire",
    "x-pjax",
    "x-pjax-container",
    "x-requested-with",
    "x-up-target",
];

static KNOWN: LazyLock<Names> = LazyLock::new(|| {
    // The names that every browser sends are compared first.
    let impersonal = IMPERSONAL.iter().copied();
    Names::of(
        [&IMPLICIT_VARY[..]]
            .into_iter()
            .chain(impersonal)
            .chain([&RARE_IMPLICIT_VARY[..], &OVERRIDES]),
    )
});
static OVERRIDING: LazyLock<Names> = LazyLock::new(|| Names::of([&OVERRIDES[..]]));
static MARKING: LazyLock<Names> =
    LazyLock::new(|| Names::of([&OVERRIDES[..], &RARE_IMPLICIT_VARY]));

/// Whether a field of this name may change an implicit page that does not vary by it. `ignored` has
/// the names that the configuration adds, in lower case.
pub(crate) fn is_unknown(name: &[u8], ignored: &[NamePattern]) -> bool {
    let is_known = KNOWN.find(name, u8::eq_ignore_ascii_case).is_some() || is_hint(name);
    !is_known && !ignored.iter().any(|pattern| pattern.matches(&name.to_ascii_lowercase()))
}

/// Which of the [`OVERRIDES`], or for an implicit page of the [`RARE_IMPLICIT_VARY`], this name is. CGI
/// does not distinguish an underscore from a hyphen (RFC 3875 4.1.18).
pub(crate) fn override_name(name: &[u8], implicit: bool) -> Option<&'static str> {
    let names = if implicit { &MARKING } else { &OVERRIDING };
    names.find(name, |theirs, known| {
        theirs.eq_ignore_ascii_case(known) || (*theirs == b'_' && *known == b'-')
    })
}

/// Client hints and Fetch metadata.
fn is_hint(name: &[u8]) -> bool {
    let starts = |prefix: &[u8]| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    starts(b"sec-ch-") || starts(b"sec-fetch-")
}

/// Names by length.
struct Names(Vec<Vec<&'static str>>);

impl Names {
    fn of<'l>(lists: impl IntoIterator<Item = &'l [&'static str]>) -> Self {
        let mut by_length: Vec<Vec<&'static str>> = Vec::new();
        for &name in lists.into_iter().flatten() {
            by_length.resize_with(by_length.len().max(name.len() + 1), Vec::new);
            by_length[name.len()].push(name);
        }
        Self(by_length)
    }

    fn find(&self, name: &[u8], is_same: impl Fn(&u8, &u8) -> bool) -> Option<&'static str> {
        let is = |known: &&&str| name.iter().zip(known.as_bytes()).all(|(a, b)| is_same(a, b));
        self.0.get(name.len())?.iter().find(is).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_in_any_case_but_one_spelling() {
        for name in ["Host", "SEC-CH-UA-Mobile", "sec-fetch-user", "X-Forwarded-For", "HX-Request"]
        {
            assert!(!is_unknown(name.as_bytes(), &[]), "{name}");
        }
        for name in ["X-Api-Key", "X_Forwarded_For", "Proxy-Authorization", "Sec-Session-Id", ""] {
            assert!(is_unknown(name.as_bytes(), &[]), "{name}");
        }
        assert!(!is_unknown(b"X-Edge-7", &[NamePattern::new("x-edge-*")]));
    }

    #[test]
    fn an_override_may_have_underscores() {
        assert_eq!(override_name(b"X-Original-URL", false), Some("x-original-url"));
        assert_eq!(override_name(b"X_Forwarded_Prefix", true), Some("x-forwarded-prefix"));
        assert_eq!(override_name(b"X-Forwarded-For", true), None);
        assert_eq!(override_name(b"Origin", true), Some("origin"));
        assert_eq!(override_name(b"Origin", false), None);
    }

    #[test]
    fn every_name_is_there_once_and_in_lower_case() {
        let mut names: Vec<&str> = KNOWN.0.concat();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| name.to_ascii_lowercase() == **name));
    }
}
