//! The rows of the matrix. A row's declaration makes its tests, and its line of the page.

use crate::stage::Service;

/// A way to wait.
#[derive(Debug)]
pub(crate) struct Row {
    /// What a reader knows it by.
    pub(crate) title: &'static str,
    /// The script of its steps, in `fixtures/waiting/rows`.
    pub(crate) script: &'static str,
    /// Who answers.
    pub(crate) service: Service,
    /// The names of its tests.
    pub(crate) checks: &'static [&'static str],
}

/// Declares the rows: each check is a function of `checks`, and becomes a test.
macro_rules! rows {
    ($($service:ident { $($name:ident $title:literal $script:ident: $($check:ident)+;)+ })+) => {
        /// All of them, in the order of the page.
        pub(crate) const ROWS: &[&rows::Row] = &[$($(&$name::ROW,)+)+];
        $($(mod $name {
            pub(crate) const ROW: crate::rows::Row = crate::rows::Row {
                title: $title,
                script: stringify!($script),
                service: crate::stage::Service::$service,
                checks: &[$(stringify!($check)),+],
            };
            $(#[test]
            fn $check() {
                crate::checks::$check(&ROW);
            })+
        })+)+
    };
}
pub(crate) use rows;
