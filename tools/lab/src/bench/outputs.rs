//! The output of results: the terminal, and files in several formats.

use super::stop::{FAILED, Stop};
use crate::terminal::{Terminal, show};
use clap::Args;
use outboard_load::{Interval, Summary, report};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The files to write.
#[derive(Debug, Args)]
pub(super) struct Outputs {
    /// Write the result as JSON.
    #[arg(long, short = 'o', value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write each interval as a line of JSON when it ends.
    #[arg(long, value_name = "FILE")]
    ndjson: Option<PathBuf>,
    /// Write the intervals as comma-separated values.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the percentile spectrum for HdrHistogram's plotter.
    #[arg(long, value_name = "FILE")]
    hgrm: Option<PathBuf>,
    /// Write the result as a self-contained page with charts.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print no progress.
    #[arg(long, short)]
    pub(super) quiet: bool,
}

impl Outputs {
    /// Opens the file of the time series, which is written during the run.
    pub(super) fn open_series(&self) -> Result<Series, Stop> {
        let Some(path) = &self.ndjson else { return Ok(Series(None)) };
        let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
        Ok(Series(Some((file, path.clone()))))
    }

    /// Prints the result and writes the files.
    pub(super) fn write(&self, summary: &Summary, terminal: Terminal) -> Result<(), Stop> {
        for line in report::text(summary).lines() {
            let is_warning = line.trim_start().starts_with("not reliable");
            show(&format!("{}\n", if is_warning { terminal.bold(line) } else { line.to_owned() }));
        }
        let files = [
            (&self.json, &(|| format!("{:#}\n", report::json(summary))) as &dyn Fn() -> String),
            (&self.csv, &|| report::csv(summary)),
            (&self.html, &|| report::html(summary)),
            (&self.hgrm, &|| report::hgrm(&summary.latency)),
        ];
        for (path, text) in files {
            if let Some(path) = path {
                write(path, &text())?;
            }
        }
        Ok(())
    }
}

/// The file of the time series, if there is one.
pub(super) struct Series(Option<(File, PathBuf)>);

impl Series {
    /// Adds an interval.
    pub(super) fn write(&mut self, interval: &Interval) -> Result<(), Stop> {
        let Some((file, path)) = &mut self.0 else { return Ok(()) };
        let written = file.write_all(report::ndjson(interval).as_bytes());
        written.map_err(|error| cannot_write(path, &error))
    }
}

/// Writes a whole file.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Stop> {
    std::fs::write(path, text).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Stop {
    Stop(FAILED, format!("cannot write {}: {error}", path.display()))
}
