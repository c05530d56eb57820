//! The report as one self-contained HTML file without script.
//!
//! [`measured`] renders a table of stacks, [`chart`] draws, and `style.css` has the light and dark
//! styles. Bars are boxes and dots are SVG in percentages, so both fit any width while text keeps
//! its size. The numbers are embedded at the end as JSON.

mod chart;
mod measured;

use std::fmt::Write as _;

use outboard_load::report::escape;
use outboard_profile::flame;

use crate::markdown::headline;
use crate::report::{Report, Section, State};
use crate::row::Row;
use crate::verdict::Outcome;

/// The number of tables per section whose charts are open; others open with a click.
const OPEN_TABLES: usize = 1;

/// The style sheet.
const STYLE: &str = include_str!("page/style.css");

/// The whole report.
pub fn render(report: &Report) -> String {
    let mut html = String::new();
    // Writing to a String does not fail.
    let _ = put(&mut html, report);
    html
}

fn put(html: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Outboard lab: {}</title>\n<style>\n{}{}</style>\n<main>",
        escape(&headline(report)),
        STYLE,
        if report.profiles.is_empty() { "" } else { flame::STYLE }
    )?;
    put_banner(html, report)?;
    put_targets(html, report)?;
    for section in &report.sections {
        put_section(html, report, section)?;
    }
    put_fairness(html, report)?;
    put_reproduction(html, report)?;
    let json = serde_json::to_string(report).expect("numbers and strings serialise");
    // A tag in the numbers would end the element.
    let json = json.replace('<', "\\u003c");
    writeln!(html, "</main>\n<script type=\"application/json\" id=\"report\">{json}</script>")
}

fn put_banner(html: &mut String, report: &Report) -> std::fmt::Result {
    let tone = match report.gate() {
        0 => "good",
        3 => "bad",
        _ => "open",
    };
    writeln!(
        html,
        "<header class=\"{tone}\"><p class=\"label\">Outboard lab{}</p><h1>{}</h1>",
        if report.run.quick { " · a quick look, not a proof" } else { "" },
        escape(&headline(report))
    )?;
    put_share(html, report)?;
    let machine = &report.machine;
    writeln!(
        html,
        "<p class=\"meta\">{} · {} · {} cores · {} · Linux {}</p>",
        escape(&report.run.began),
        escape(&machine.processor),
        machine.cores,
        escape(&machine.system),
        escape(&machine.kernel)
    )?;
    if report.sections.len() > 1 {
        let link = |section: &Section| {
            let name = escape(&section.name);
            format!("<a href=\"#{name}\">{name}</a>")
        };
        let links: Vec<String> = report.sections.iter().map(link).collect();
        writeln!(html, "<nav>{}</nav>", links.join(" "))?;
    }
    writeln!(html, "</header>")
}

/// The outcomes of all targets as one line of boxes.
fn put_share(html: &mut String, report: &Report) -> std::fmt::Result {
    if report.verdicts.is_empty() {
        return Ok(());
    }
    write!(html, "<div class=\"share\" aria-hidden=\"true\">")?;
    for outcome in [Outcome::Pass, Outcome::Fail, Outcome::Undecided, Outcome::NotMeasured] {
        let count = report.count(outcome);
        if count > 0 {
            write!(html, "<i class=\"{}\" style=\"flex:{count}\"></i>", outcome_class(outcome))?;
        }
    }
    writeln!(html, "</div>")
}

fn put_targets(html: &mut String, report: &Report) -> std::fmt::Result {
    if report.verdicts.is_empty() {
        return Ok(());
    }
    writeln!(html, "<section><h2>Targets</h2><div class=\"scroll\"><table class=\"targets\">")?;
    for verdict in &report.verdicts {
        writeln!(
            html,
            "<tr><td><span class=\"badge {}\">{}</span></td><td>{}</td><td class=\"quiet\">{}</td></tr>",
            outcome_class(verdict.outcome),
            verdict.outcome.word().to_lowercase(),
            escape(&verdict.target),
            escape(&verdict.measured)
        )?;
    }
    writeln!(html, "</table></div></section>")
}

fn outcome_class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "good",
        Outcome::Fail => "bad",
        Outcome::Undecided => "open",
        Outcome::NotMeasured => "none",
    }
}

fn put_section(html: &mut String, report: &Report, section: &Section) -> std::fmt::Result {
    let name = escape(&section.name);
    writeln!(html, "<section id=\"{name}\"><h2>{name}</h2><p>{}</p>", escape(&section.about))?;
    match &section.state {
        State::Measured => {}
        State::SubjectMissing { what } => {
            writeln!(html, "<p class=\"note\"><b>Not yet.</b> {}.</p>", escape(what))?;
        }
        State::Failed { why } => {
            writeln!(html, "<p class=\"note bad\"><b>Refused or failed.</b> {}</p>", escape(why))?;
        }
    }
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.section == section.name).collect();
    measured::put_rates(html, &rows)?;
    let tables = report.tables();
    let tables = tables.into_iter().filter(|table| table[0].section == section.name);
    for (at, table) in tables.enumerate() {
        measured::put(html, report, table, at < OPEN_TABLES)?;
    }
    writeln!(html, "</section>")
}

fn put_fairness(html: &mut String, report: &Report) -> std::fmt::Result {
    let Some(matrix) = &report.fairness else { return Ok(()) };
    let findings = matrix.findings().len();
    let words = match findings {
        0 => "As observed on the running stacks; nothing that matters differs.".to_owned(),
        _ => format!("As observed on the running stacks; {findings} differ where they should not."),
    };
    writeln!(
        html,
        "<section id=\"fairness\"><h2>Settings</h2><p>{words}</p>\
         <div class=\"scroll\"><table class=\"matrix\"><tr><th></th>"
    )?;
    matrix.stacks.iter().try_for_each(|stack| write!(html, "<th>{}</th>", escape(stack)))?;
    writeln!(html, "</tr>")?;
    for setting in &matrix.settings {
        write!(html, "<tr><th>{}</th>", escape(&setting.name))?;
        for (at, value) in setting.values.iter().enumerate() {
            let class = if setting.differs(at) { " class=\"differs\"" } else { "" };
            write!(html, "<td{class}>{}</td>", escape(value.as_deref().unwrap_or("–")))?;
        }
        writeln!(html, "</tr>")?;
    }
    writeln!(html, "</table></div></section>")
}

fn put_reproduction(html: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(
        html,
        "<section><h2>How to repeat it</h2><pre>{}</pre><p>It took {:.0} s. Slices alternate \
         in balanced order; a pair is two slices of one round. Intervals are Hodges–Lehmann at \
         95 %, from the exact Wilcoxon signed-rank test; probabilities are Holm's within each \
         table. CPU is user and system time of all processes of a stack, per answered request. \
         Latency is that of a closed loop, not what a user would wait.</p><ul class=\"quiet\">",
        escape(&report.run.command),
        report.run.seconds
    )?;
    for version in &report.machine.versions {
        writeln!(html, "<li>{}</li>", escape(version))?;
    }
    writeln!(html, "</ul>")?;
    if let Some(spent) = report.time_spent() {
        writeln!(html, "<h3>Where the time went</h3><p>{}</p>", escape(&spent))?;
    }
    if !report.notes.is_empty() {
        writeln!(html, "<h3>Notes</h3><ul>")?;
        report.notes.iter().try_for_each(|note| writeln!(html, "<li>{}</li>", escape(note)))?;
        writeln!(html, "</ul>")?;
    }
    writeln!(html, "</section>")
}

/// At least three digits, with thousands separated.
fn number(value: f64) -> String {
    let places = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text.split_once('.').map_or((&*text, ""), |(whole, rest)| (whole, rest));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    if rest.is_empty() { grouped } else { format!("{grouped}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    #[test]
    fn text_stays_text() {
        let mut report = Report::default();
        report.begin("ab", "<script>alert(1)</script>");
        report.verdicts.push(Verdict::exact("a < b & \"c\"", false, "</script>".into()));
        let html = render(&report);
        assert!(html.contains("a &lt; b &amp; &quot;c&quot;"), "{html}");
        // The one of the embedded numbers, and no other.
        assert_eq!(html.matches("<script").count(), 1);
        assert_eq!(html.matches("</script>").count(), 1);
    }

    #[test]
    fn nothing_is_fetched() {
        let html = render(&Report::default());
        for word in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!html.contains(word), "{word}");
        }
    }

    #[test]
    fn numbers_keep_three_figures() {
        let words = [1234567.8, 123.4, 12.34, 1.234].map(number);
        assert_eq!(words, ["1\u{202f}234\u{202f}568", "123", "12.3", "1.23"]);
    }
}
