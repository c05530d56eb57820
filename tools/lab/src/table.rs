//! The report as plain text: machine, measurements, comparisons, targets.

use std::fmt::Write;

use crate::fairness::Matrix;
use crate::markdown::headline;
use crate::report::{Report, State};
use crate::row::Row;
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
    // Writing to a String does not fail.
    let _ = put_rows(&mut text, report);
    let _ = put_comparisons(&mut text, report);
    let _ = put_targets(&mut text, report);
    text
}

fn put_rows(text: &mut String, report: &Report) -> std::fmt::Result {
    if report.rows.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "\nmeasured (medians over slices; CPU is user + system of all server processes)"
    )?;
    let head = [
        "experiment",
        "stack",
        "responses",
        "failed",
        "keep-alive",
        "responses/s",
        "p50 ms",
        "p99 ms",
        "CPU µs/request",
        "instructions",
        "PSS MiB",
    ];
    text.push_str(&columns(&head, report.rows.iter().map(row_cells), 2));
    Ok(())
}

fn put_comparisons(text: &mut String, report: &Report) -> std::fmt::Result {
    if !report.comparisons.is_empty() {
        writeln!(text, "\ncompared (pair by pair; Holm's correction within each table)")?;
    }
    for experiment in report.comparisons.chunk_by(|a, b| a.experiment == b.experiment) {
        writeln!(text, "{}", experiment[0].experiment)?;
        experiment.iter().try_for_each(|comparison| writeln!(text, "  {comparison}"))?;
    }
    Ok(())
}

fn put_targets(text: &mut String, report: &Report) -> std::fmt::Result {
    if !report.verdicts.is_empty() {
        writeln!(text, "\ntargets (ratios with their intervals)")?;
        let head = ["target", "verdict", "measured"];
        text.push_str(&columns(&head, report.verdicts.iter().map(verdict_cells), 3));
    }
    writeln!(text)?;
    for section in &report.sections {
        match &section.state {
            State::Measured => {}
            State::SubjectMissing { what } => writeln!(text, "{}: {what}", section.name)?,
            State::Failed { why } => writeln!(text, "{}: refused or failed: {why}", section.name)?,
        }
    }
    report.notes.iter().try_for_each(|note| writeln!(text, "note: {note}"))?;
    if let Some(spent) = report.time_spent() {
        writeln!(text, "\n{spent}")?;
    }
    writeln!(text, "\n{}", headline(report))
}

/// Settings of stacks side by side; differences are marked and passed to `red`.
pub fn matrix(matrix: &Matrix, red: impl Fn(&str) -> String) -> String {
    let head: Vec<&str> =
        std::iter::once("setting").chain(matrix.stacks.iter().map(String::as_str)).collect();
    let cells = matrix.settings.iter().map(|setting| {
        let values = setting.values.iter().enumerate().map(|(at, value)| {
            let mark = if setting.differs(at) { "≠ " } else { "" };
            format!("{mark}{}", value.as_deref().unwrap_or("–"))
        });
        std::iter::once(setting.name.clone()).chain(values).collect()
    });
    let text = columns(&head, cells, head.len());
    // Colours are added last, since they would count as width.
    let lines = text.lines().map(|line| if line.contains('≠') { red(line) } else { line.into() });
    lines.collect::<Vec<String>>().join("\n") + "\n"
}

fn row_cells(row: &Row) -> Vec<String> {
    vec![
        row.experiment.clone(),
        row.stack.clone(),
        row.responses.to_string(),
        row.failures.to_string(),
        row.keep_alive.map_or_else(|| "–".into(), |share| format!("{:.1} %", share * 100.0)),
        format!("{:.0}", row.rate),
        format!("{:.2}", row.p50_ms),
        format!("{:.2}", row.p99_ms),
        format!("{:.2}", row.cpu_us),
        row.instructions_text(),
        format!("{:.1}", row.pss_mib),
    ]
}

fn verdict_cells(verdict: &Verdict) -> Vec<String> {
    vec![verdict.target.clone(), verdict.outcome.word().into(), verdict.measured.clone()]
}

/// Columns as wide as their widest cell: the first `left` ones left-aligned, the others
/// right-aligned.
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
    use crate::fairness::Setting;

    #[test]
    fn columns_line_up_beyond_ascii() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["µµ".to_owned(), "22".to_owned()]];
        let text = columns(&["name", "n"], rows.into_iter(), 1);
        assert_eq!(text, "name   n\na      1\nµµ    22\n");
    }

    #[test]
    fn a_setting_that_differs_is_marked() {
        let values = ["on", "on", "off"].map(|value| Some(value.to_owned())).into();
        let setting = Setting { name: "opcache".into(), values, must_agree: true };
        let stacks = ["a", "b", "c"].map(str::to_owned).into();
        let text = matrix(&Matrix { stacks, settings: vec![setting] }, |line| format!("!{line}"));
        assert_eq!(text, "setting  a   b   c\n!opcache  on  on  ≠ off\n");
    }
}
