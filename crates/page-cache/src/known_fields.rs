//! The fields of requests that are known, and what they are about.
//!
//! Called for every request of an app that has a cache, so names are told apart by their length
//! first. Invariant: what no list has may be what an application knows somebody by (a key, a token,
//! a tenant), and counts so: a page that does not say that it is for everybody is then not anybody's.

use crate::pattern::NamePattern;
use std::sync::LazyLock;

/// Fields that say nothing of who asks that a page would be made by.
const NOBODYS: &[&[&str]] = &[
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
    // These are looked at in ways of their own.
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
    // What is wanted of a cache.
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
    // The address of the visitor, which pages are not told apart by, and proxies on the way.
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
    // Traces: each request has its own.
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

/// What silent pages are told apart by though they do not say so: what applications look at
/// without a word in Vary.
pub const SILENT_NAMES: [&str; 3] = ["accept", "accept-language", "user-agent"];

/// More of that, which few requests have.
pub const SILENT_MARKS: [&str; 9] = [
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

/// Fields that frameworks take for a part of the URL or of the method, or send a part of the page
/// by. Every response is told apart by them, or one client could have a page stored that others get
/// with links to a host of its choice, or a fragment instead of a page.
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
    // The names that every browser sends are found first.
    let nobodys = NOBODYS.iter().copied();
    Names::of([&SILENT_NAMES[..]].into_iter().chain(nobodys).chain([&SILENT_MARKS[..], &OVERRIDES]))
});
static OVERRIDING: LazyLock<Names> = LazyLock::new(|| Names::of([&OVERRIDES[..]]));
static MARKING: LazyLock<Names> = LazyLock::new(|| Names::of([&OVERRIDES[..], &SILENT_MARKS]));

/// Whether a field of this name may change what a silent page is, though pages are not told apart
/// by it. `harmless` has the names that the configuration adds, in lower case.
pub(crate) fn is_unknown(name: &[u8], harmless: &[NamePattern]) -> bool {
    let is_known = KNOWN.find(name, u8::eq_ignore_ascii_case).is_some() || is_hint(name);
    !is_known && !harmless.iter().any(|pattern| pattern.matches(&name.to_ascii_lowercase()))
}

/// Which of the [`OVERRIDES`], or for a silent page of the [`SILENT_MARKS`], this name is. Behind CGI
/// an underscore is as good as a hyphen (RFC 3875 4.1.18).
pub(crate) fn telling(name: &[u8], silent: bool) -> Option<&'static str> {
    let names = if silent { &MARKING } else { &OVERRIDING };
    names.find(name, |theirs, known| {
        theirs.eq_ignore_ascii_case(known) || (*theirs == b'_' && *known == b'-')
    })
}

/// What browsers say about themselves (client hints) and about why they ask (Fetch metadata).
fn is_hint(name: &[u8]) -> bool {
    let starts = |prefix: &[u8]| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    starts(b"sec-ch-") || starts(b"sec-fetch-")
}

/// Names by their length.
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
    fn names_are_known_whatever_their_case_and_only_as_they_are_written() {
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
    fn an_override_is_one_with_underscores_too() {
        assert_eq!(telling(b"X-Original-URL", false), Some("x-original-url"));
        assert_eq!(telling(b"X_Forwarded_Prefix", true), Some("x-forwarded-prefix"));
        assert_eq!(telling(b"X-Forwarded-For", true), None);
        assert_eq!(telling(b"Origin", true), Some("origin"));
        assert_eq!(telling(b"Origin", false), None);
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
