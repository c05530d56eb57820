//! Health checks of the servers of an upstream, and the statuses that count as healthy.

use super::Context;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::Fault;

/// How servers are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// Path of the request.
    pub path: String,
    /// Time between two checks.
    pub interval_ms: u64,
    /// Maximum time of a check.
    pub timeout_ms: u64,
    /// Statuses of a server that is up.
    pub status: StatusSet,
    /// Successful checks until a server is up.
    pub healthy: u32,
    /// Failed checks until a server is down.
    pub unhealthy: u32,
    /// The `Host` of the request; `None`: that of the URL.
    pub host: Option<String>,
}

/// Ranges of statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSet(Vec<(u16, u16)>);

impl StatusSet {
    /// Whether a status is among them.
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }

    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        Self(texts.filter_map(range).collect())
    }
}

/// `200`, or `2xx`.
fn range(text: &str) -> Option<(u16, u16)> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
        return Some((class * 100, class * 100 + 99));
    }
    let status = text.parse().ok().filter(|status| (100..=599).contains(status))?;
    Some((status, status))
}

pub(super) fn health_check(
    raw: &raw::HealthCheck,
    place: &[&str; 2],
    context: &mut Context<'_>,
) -> HealthCheck {
    for (index, text) in raw.status.iter().enumerate().filter(|(_, text)| range(&text.0).is_none())
    {
        let fault = Fault::new(format!("`{}` is not a status", text.0)).hint("\"200\" or \"2xx\"");
        let index = index.to_string();
        let at = [&place[..], &["health_check", "status", &index]].concat();
        context.value(&at, Kind::BadValue, fault);
    }
    HealthCheck {
        path: raw.path.0.clone(),
        interval_ms: raw.interval.0,
        timeout_ms: raw.timeout.0,
        status: StatusSet::of(raw.status.iter().map(|text| &text.0[..])),
        healthy: raw.healthy,
        unhealthy: raw.unhealthy,
        host: raw.host.as_ref().map(|host| host.0.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_numbers_and_classes() {
        let set = StatusSet::of(["204", "3xx"].into_iter());
        assert!(set.contains(204) && set.contains(304) && set.contains(399));
        assert!(!set.contains(200) && !set.contains(404));
        assert_eq!(
            [range("2xx"), range("20"), range("6xx"), range("x")],
            [Some((200, 299)), None, None, None]
        );
    }
}
