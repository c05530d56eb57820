//! Differences between the rounds, and their output.
//!
//! Invariant: of a place that differs, only the innermost differences are reported.

use super::report::{Entry, Place, Snapshot};
use crate::terminal::Terminal;
use std::collections::BTreeSet;

/// State that requests left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) kind: String,
    pub(super) name: String,
    /// File and line, or empty.
    pub(super) declared_at: String,
    /// The value in the first round and in the next one; `None`: missing.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Whether the second round changed it again.
    pub(super) keeps_changing: bool,
}

/// Maximum number of innermost differences reported per kind of change in a place.
const MOST_OF_A_PLACE: usize = 5;

/// Compares the state at the first request of each round; `None` if the report is too short.
pub(super) fn compare(snapshots: &[Snapshot], requests: usize) -> Option<Vec<Finding>> {
    let [first, second, third] = [0, requests, 2 * requests]
        .map(|at| snapshots.get(at))
        .into_iter()
        .collect::<Option<Vec<_>>>()?[..]
    else {
        return None;
    };
    let again: BTreeSet<&Place> = differences(second, third).into_iter().collect();
    let once = differences(first, second);
    let both: BTreeSet<&Place> = once.into_iter().chain(again.iter().copied()).collect();
    let reported = innermost(&both);
    Some(reported.into_iter().map(|place| finding(place, first, second, third, &again)).collect())
}

fn finding(
    place: &Place,
    first: &Snapshot,
    second: &Snapshot,
    third: &Snapshot,
    again: &BTreeSet<&Place>,
) -> Finding {
    let value = |snapshot: &Snapshot| snapshot.get(place).map(|entry| entry.value.clone());
    let (mut before, mut after) = (value(first), value(second));
    if before == after {
        (before, after) = (value(second), value(third));
    }
    Finding {
        kind: place.kind.clone(),
        name: place.name.clone(),
        declared_at: place.declared_at.clone(),
        before,
        after,
        keeps_changing: again.contains(place),
    }
}

fn differences<'a>(before: &'a Snapshot, after: &'a Snapshot) -> Vec<&'a Place> {
    let changed = after
        .iter()
        .filter(|(place, entry)| is_different(before.get(place), entry))
        .map(|(place, _)| place);
    let gone = before.keys().filter(|place| !after.contains_key(place) && is_state(place));
    let all: Vec<&Place> = changed.chain(gone).collect();
    let roots: Vec<&Place> =
        all.iter().copied().filter(|place| depth(place, before, after) == 0).collect();
    // Parts of an unchanged place are ignored: they were only loaded later.
    let is_below_a_root =
        |place: &Place| roots.iter().any(|root| is_part(place, root) || std::ptr::eq(*root, place));
    all.into_iter().filter(|place| is_below_a_root(place)).collect()
}

fn depth(place: &Place, before: &Snapshot, after: &Snapshot) -> usize {
    after.get(place).or_else(|| before.get(place)).map_or(0, |entry| entry.depth)
}

/// Removed places that need no report: closures, and values inside a reported one.
fn is_state(place: &Place) -> bool {
    place.kind != "static variable" && place.kind != "open resources"
}

/// A new place with its declared value holds no state.
fn is_different(before: Option<&Entry>, after: &Entry) -> bool {
    match before {
        Some(before) => before.fingerprint != after.fingerprint,
        None if after.declared == "?" => false,
        None => after.fingerprint != after.declared,
    }
}

/// The innermost differences, a few per place.
fn innermost<'a>(differences: &BTreeSet<&'a Place>) -> Vec<&'a Place> {
    let has_inner = |outer: &Place| differences.iter().any(|inner| is_part(inner, outer));
    let mut reported: Vec<&Place> = Vec::new();
    for place in differences.iter().filter(|place| !has_inner(place)) {
        let of_same =
            reported.iter().filter(|other| root(&other.name) == root(&place.name)).count();
        if of_same < MOST_OF_A_PLACE {
            reported.push(place);
        }
    }
    reported
}

fn is_part(inner: &Place, outer: &Place) -> bool {
    inner.kind == outer.kind
        && inner.declared_at == outer.declared_at
        && inner.number == outer.number
        && is_below(&inner.name, &outer.name)
}

fn is_below(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('[') || rest.starts_with("->"))
}

fn root(name: &str) -> &str {
    let start = name.find('$').unwrap_or(0);
    let end = name[start..].find(['[', '-']).map_or(name.len(), |at| start + at);
    &name[..end]
}

impl Finding {
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "kind": self.kind,
            "name": self.name,
            "declared_at": self.declared_at,
            "before": self.before,
            "after": self.after,
            "keeps_changing": self.keeps_changing,
        })
    }

    pub(super) fn text(&self, terminal: &Terminal) -> String {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
        let again = if self.keeps_changing { ", and again with every request" } else { "" };
        let place = if self.declared_at.is_empty() {
            String::new()
        } else {
            terminal.dim(&format!("\n    {}", self.declared_at))
        };
        format!(
            "{} {}: {} -> {}{again}{place}",
            self.kind,
            terminal.bold(&self.name),
            value(&self.before),
            value(&self.after),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::doctor::report::snapshots;

    fn report(rounds: [&str; 3]) -> Vec<super::Finding> {
        let text: String = rounds.iter().map(|lines| format!("begin\n{lines}end\n")).collect();
        compare(&snapshots(&text), 1).unwrap()
    }

    #[test]
    fn unchanged_state_is_not_reported() {
        let line = "0\tglobal\t$a\t\t01\t1\t\n";
        assert_eq!(report([line, line, line]), []);
    }

    #[test]
    fn a_change_is_reported_with_the_values_of_both_rounds() {
        let found = report([
            "0\tglobal\t$a\t\t01\t1\t\n",
            "0\tglobal\t$a\t\t02\t2\t\n",
            "0\tglobal\t$a\t\t03\t3\t\n",
        ]);
        assert_eq!((found[0].before.as_deref(), found[0].after.as_deref()), (Some("1"), Some("2")));
        assert!(found[0].keeps_changing);
    }

    #[test]
    fn state_with_its_declared_value_is_not_reported() {
        let line = "0\tstatic property\tA::$b\ta.php:2\t01\t1\t01\n";
        let with_part = format!("{line}1\tstatic property\tA::$b['c']\ta.php:2\t05\t5\t\n");
        assert_eq!(report(["", line, line]), []);
        assert_eq!(report(["", &with_part, &with_part]), []);
        let changed = "0\tstatic property\tA::$b\ta.php:2\t02\t2\t01\n";
        let found = report(["", changed, changed]);
        assert_eq!((found.len(), found[0].keeps_changing), (1, false));
        assert_eq!(found[0].declared_at, "a.php:2");
    }

    #[test]
    fn only_the_innermost_difference_is_reported() {
        let lines = |n: u8| {
            format!(
                "0\tglobal\t$a\t\t0{n}\tA\t\n1\tglobal\t$a->b\t\t1{n}\tarray(1)\t\n2\tglobal\t$a->b['c']\t\t2{n}\t{n}\t\n"
            )
        };
        let found = report([&lines(1), &lines(2), &lines(2)]);
        let names: Vec<_> = found.iter().map(|finding| finding.name.as_str()).collect();
        assert_eq!(names, ["$a->b['c']"]);
    }

    #[test]
    fn a_report_that_is_too_short_is_refused() {
        assert!(compare(&snapshots("begin\nend\nbegin\n"), 1).is_none());
    }
}
