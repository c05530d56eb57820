//! The files of a report: as JSON, Markdown and a page.
//!
//! Written by the command that measured.

use std::path::Path;

use crate::error::{Result, ResultExt};
use crate::report::Report;
use crate::system::write;
use crate::{markdown, page};

/// Writes the report in every format to a directory.
pub fn write_report(report: &Report, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).context(|| format!("make {}", directory.display()))?;
    write(&directory.join("report.json"), report.to_json())?;
    write(&directory.join("report.md"), markdown::render(report))?;
    write(&directory.join("report.html"), page::render(report))
}
