//! The report as plain text: machine, measurements, bars.

use std::fmt::Write;

use crate::report::{Report, Row};
use crate::verdict::Verdict;

/// The whole report.
pub fn render(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = format!(
        "machine   {}, {} cores, {} MiB, {}, Linux {}\nversions  {}\n",
        machine.processor,
        machine.cores,
        machine.memory_mib,
        machine.system,
        machine.kernel,
        machine.versions.join("\n          ")
    );
    text.push_str(
        "\nmeasured (medians over slices; CPU is user + system of all server processes)\n",
    );
    let head = [
        "experiment",
        "stack",
        "answers",
        "failed",
        "keep-alive",
        "answers/s",
        "p50 ms",
        "p99 ms",
        "CPU µs/request",
        "PSS MiB",
    ];
    text.push_str(&columns(&head, report.rows.iter().map(row_cells), 2));
    text.push_str("\nbars (ratios with the interval that holds them)\n");
    let head = ["bar", "verdict", "measured"];
    text.push_str(&columns(&head, report.verdicts.iter().map(verdict_cells), 3));
    for note in &report.notes {
        let _ = write!(text, "\nnote: {note}");
    }
    text.push('\n');
    text
}

fn row_cells(row: &Row) -> Vec<String> {
    vec![
        row.experiment.clone(),
        row.stack.clone(),
        row.answers.to_string(),
        row.failures.classes(),
        row.keep_alive.map_or_else(|| "–".into(), |share| format!("{:.1} %", share * 100.0)),
        format!("{:.0}", row.rate),
        format!("{:.2}", row.p50_ms),
        format!("{:.2}", row.p99_ms),
        format!("{:.2}", row.cpu_us),
        format!("{:.1}", row.pss_mib),
    ]
}

fn verdict_cells(verdict: &Verdict) -> Vec<String> {
    vec![verdict.bar.clone(), verdict.outcome.word().into(), verdict.measured.clone()]
}

/// Columns as wide as their widest cell: the first `left` of them flush left, numbers right.
fn columns(head: &[&str], rows: impl Iterator<Item = Vec<String>>, left: usize) -> String {
    let mut lines: Vec<Vec<String>> = vec![head.iter().map(|&cell| cell.into()).collect()];
    lines.extend(rows);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
            if at < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let cells: Vec<String> = cells.collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_beyond_ascii() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["µµ".to_owned(), "22".to_owned()]];
        let text = columns(&["name", "n"], rows.into_iter(), 1);
        assert_eq!(text, "name   n\na      1\nµµ    22\n");
    }
}
