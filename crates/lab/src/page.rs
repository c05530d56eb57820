//! The report as one HTML file.

use crate::report::Report;

/// The whole report.
pub fn render(report: &Report) -> String {
    format!("<!doctype html><title>lab</title><pre>{}</pre>", crate::table::render(report))
}
