//! [`StatusSet`]: statuses of responses, by number and by class.

use crate::scalar::{Form, StatusClass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ranges of statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSet(Vec<(u16, u16)>);

impl StatusSet {
    /// Whether a status is among them.
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }

    pub(crate) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        Self(texts.filter_map(range).collect())
    }

    /// Whether a text is a status or a class.
    pub(crate) fn is_status(text: &str) -> bool {
        range(text).is_some()
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

/// How statuses of errors are written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub(crate) struct ErrorStatuses(Vec<StatusClass>);

impl Form for ErrorStatuses {
    type Plain = StatusSet;

    fn plain(self) -> StatusSet {
        StatusSet::of(self.0.iter().map(|StatusClass(text)| &text[..]))
    }

    fn of(plain: &StatusSet) -> Self {
        let text = |(first, last): &(u16, u16)| match first == last {
            true => first.to_string(),
            false => format!("{}xx", first / 100),
        };
        Self(plain.0.iter().map(text).map(StatusClass).collect())
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

    #[test]
    fn statuses_are_written_as_they_are_read() {
        let written = ["502", "4xx"].map(|text| StatusClass(text.to_owned()));
        let read = ErrorStatuses(written.to_vec()).plain();
        assert_eq!(ErrorStatuses::of(&read).0, written);
    }
}
