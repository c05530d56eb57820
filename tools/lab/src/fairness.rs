//! Whether the settings of stacks are alike: the effective settings side by side.
//!
//! Filled by [`crate::doctor`], shown in every report. Invariant: a cell holds what was observed on
//! the running stack, not what its configuration says.

use serde::{Deserialize, Serialize};

/// Settings by stack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The columns.
    pub stacks: Vec<String>,
    /// The rows.
    pub settings: Vec<Setting>,
}

/// One setting of all stacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value in every stack, in the order of the columns; `None` if the stack lacks the
    /// setting.
    pub values: Vec<Option<String>>,
    /// Whether a comparison is unfair where they differ.
    pub must_agree: bool,
}

impl Setting {
    /// Whether a value differs from the most frequent one (the first of equally frequent ones).
    pub fn differs(&self, at: usize) -> bool {
        let Some(Some(value)) = self.values.get(at) else { return false };
        self.must_agree && self.usual().is_some_and(|usual| usual != value)
    }

    fn usual(&self) -> Option<&String> {
        let values = || self.values.iter().flatten();
        let times = |value: &String| values().filter(|other| *other == value).count();
        // `max_by_key` returns the last of equals.
        values().rev().max_by_key(|value| times(value))
    }

    /// Whether any stack differs.
    pub fn is_unequal(&self) -> bool {
        (0..self.values.len()).any(|at| self.differs(at))
    }
}

impl Matrix {
    /// The matrix as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings serialise")
    }

    /// The differences that make a comparison unfair, as sentences.
    pub fn findings(&self) -> Vec<String> {
        let words = |setting: &Setting| {
            let each = self.stacks.iter().zip(&setting.values);
            let each = each.map(|(stack, value)| {
                format!("{stack} has {}", value.as_deref().unwrap_or("no such setting"))
            });
            format!("{} differs: {}", setting.name, each.collect::<Vec<_>>().join(", "))
        };
        self.settings.iter().filter(|setting| setting.is_unequal()).map(words).collect()
    }
}

impl Matrix {
    /// Accepts differences of these settings.
    pub fn accept(&mut self, names: &[String]) {
        for setting in &mut self.settings {
            setting.must_agree &= !names.contains(&setting.name);
        }
    }

    /// Why the stacks must not be compared, if their settings differ.
    pub fn refusal(&self) -> Option<String> {
        let findings = self.findings();
        let why = format!(
            "their settings differ: {}; --accept NAME compares them anyway",
            findings.join("; ")
        );
        (!findings.is_empty()).then_some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(values: &[Option<&str>], must_agree: bool) -> Setting {
        let values = values.iter().map(|value| value.map(str::to_owned)).collect();
        Setting { name: "opcache".into(), values, must_agree }
    }

    #[test]
    fn the_one_that_is_alone_differs() {
        let setting = setting(&[Some("on"), Some("off"), None, Some("on")], true);
        assert_eq!([0, 1, 2, 3].map(|at| setting.differs(at)), [false, true, false, false]);
    }

    #[test]
    fn of_two_the_second_differs() {
        let setting = setting(&[Some("on"), Some("off")], true);
        assert_eq!([0, 1].map(|at| setting.differs(at)), [false, true]);
    }

    #[test]
    fn settings_that_may_differ_are_no_finding() {
        let stacks = vec!["a".into(), "b".into()];
        let named = setting(&[Some("fpm"), Some("cli")], false);
        let unequal = setting(&[Some("on"), Some("off")], true);
        let matrix = Matrix { stacks, settings: vec![named, unequal] };
        assert_eq!(matrix.findings(), ["opcache differs: a has on, b has off"]);
    }

    #[test]
    fn unequal_settings_are_refused_until_they_are_accepted() {
        let unequal = setting(&[Some("on"), Some("off")], true);
        let stacks = vec!["a".into(), "b".into()];
        let mut matrix = Matrix { stacks, settings: vec![unequal] };
        let why = matrix.refusal().expect("they differ");
        assert!(why.contains("opcache differs: a has on, b has off"), "{why}");
        matrix.accept(&["opcache".into()]);
        assert_eq!(matrix.refusal(), None);
    }
}
