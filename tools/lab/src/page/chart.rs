//! The charts of the page: bars with whiskers, dots, stacked shares, lines over slices.
//!
//! All horizontal positions are percentages, since the width depends on the reader's window. Line
//! charts are those of [`outboard_load::report::chart`].

use std::fmt::Write as _;

use outboard_load::report::chart::{Chart, Line, Scale};

use super::{escape, number};
use crate::comparison::change;
use crate::statistics::{Estimate, middle};

/// Colours in `style.css`.
const COLOURS: usize = 6;

/// Colours of processes, likewise.
const PROCESS_COLOURS: usize = 6;

/// Height of the chart of slices.
const LINES_PX: f64 = 110.0;

/// Height of the chart of latencies.
const CURVES_PX: f64 = 180.0;

/// The colour key of a stack.
pub(super) fn key(stack: usize) -> String {
    format!("<i class=\"key c{}\"></i>", stack % COLOURS)
}

/// A bar from zero, with its interval across the end.
pub(super) fn bar(value: &Estimate, most: f64, stack: usize) -> String {
    let percent = |value: f64| 100.0 * value / most.max(f64::MIN_POSITIVE);
    format!(
        "<div class=\"bar\"><i class=\"c{}\" style=\"width:{:.2}%\"></i>\
         <b style=\"left:{:.2}%;width:{:.2}%\"></b></div>",
        stack % COLOURS,
        percent(value.middle),
        percent(value.low),
        percent(value.high - value.low)
    )
}

/// Each pair's difference of logarithms as a dot around zero, with the interval of their middle.
pub(super) fn dots(differences: &[f64], most: f64) -> String {
    let at = |value: f64| 50.0 + 50.0 * value / most;
    let mut svg = "<svg class=\"pairs\" role=\"img\"><line class=\"zero\" x1=\"50%\" x2=\"50%\" \
                   y1=\"0\" y2=\"34\"/>"
        .to_owned();
    if let Some(Estimate { low, middle, high, .. }) = middle(differences) {
        let _ = write!(
            svg,
            "<line class=\"interval\" x1=\"{:.2}%\" x2=\"{:.2}%\" y1=\"26\" y2=\"26\"/>\
             <circle class=\"middle\" cx=\"{:.2}%\" cy=\"26\" r=\"4\"/>",
            at(low),
            at(high),
            at(middle)
        );
    }
    for (pair, difference) in differences.iter().enumerate() {
        // Alternating heights keep adjacent dots apart.
        let y = 8 + 5 * (pair % 2);
        let words = change(difference.exp());
        let _ = write!(
            svg,
            "<circle class=\"pair\" cx=\"{:.2}%\" cy=\"{y}\" r=\"3.5\"><title>pair {}: {words}\
             </title></circle>",
            at(*difference),
            pair + 1
        );
    }
    svg + "</svg>"
}

/// The axis of [`dots`].
pub(super) fn ratio_axis(most: f64) -> String {
    let words = [-most, -most / 2.0, 0.0, most / 2.0, most].map(|at| match at {
        0.0 => "equal".to_owned(),
        _ => change(at.exp()),
    });
    let words = words.map(|word| format!("<span>{word}</span>"));
    format!("<div class=\"axis\">{}</div>", words.concat())
}

/// Parts of a whole in µs in sequence, each kind in its colour.
pub(super) fn stacked(parts: &[(String, f64)], kinds: &[&str], most: f64) -> String {
    let mut html = "<div class=\"stacked\">".to_owned();
    for (kind, us) in parts {
        let colour = kinds.iter().position(|other| other == kind).unwrap_or(0) % PROCESS_COLOURS;
        let (kind, us_words) = (escape(kind), number(*us));
        let share = 100.0 * us / most;
        // Text that does not fit is only in the title.
        let words = if share > 6.0 { &us_words } else { "" };
        let _ = write!(
            html,
            "<i class=\"p{colour}\" style=\"width:{share:.2}%\" title=\"{kind} {us_words} µs\">\
             {words}</i>"
        );
    }
    html + "</div>"
}

/// The legend of process kinds.
pub(super) fn legend(kinds: &[&str]) -> String {
    let each = kinds.iter().enumerate().map(|(at, kind)| {
        format!("<span><i class=\"key p{}\"></i>{}</span>", at % PROCESS_COLOURS, escape(kind))
    });
    format!("<div class=\"legend\">{}</div>", each.collect::<String>())
}

/// One line per stack over its slices, from zero to the largest value.
pub(super) fn lines(series: &[(&str, Vec<f64>)]) -> String {
    let slices = series.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let values = || series.iter().flat_map(|(_, values)| values).copied();
    if values().all(|value| value <= 0.0) {
        return String::new();
    }
    let points =
        |values: &[f64]| values.iter().enumerate().map(|(at, v)| (at as f64, *v)).collect();
    let lines = series.iter().enumerate().map(|(stack, (name, values))| Line {
        name: (*name).to_owned(),
        colour: stack % COLOURS,
        points: points(values),
    });
    let chart = Chart {
        height_px: LINES_PX,
        x: Scale::Linear(slices.saturating_sub(1).max(1) as f64),
        y: Scale::linear_to(values()),
        x_labels: Vec::new(),
        y_unit: "",
        lines: lines.collect(),
    };
    chart.svg()
}

/// A curve per stack, with positions from 0 to 1 and times in ms on a logarithmic scale; `x_labels`
/// are those of the axis.
pub(super) fn curves(curves: &[(&str, Vec<(f64, f64)>)], x_labels: &[(f64, String)]) -> String {
    if curves.iter().all(|(_, points)| points.is_empty()) {
        return String::new();
    }
    let lines = curves.iter().enumerate().map(|(stack, (name, points))| Line {
        name: (*name).to_owned(),
        colour: stack % COLOURS,
        points: points.clone(),
    });
    let chart = Chart {
        height_px: CURVES_PX,
        x: Scale::Linear(1.0),
        y: Scale::log_around(curves.iter().flat_map(|(_, points)| points).map(|(_, ms)| *ms)),
        x_labels: x_labels.to_vec(),
        y_unit: "ms",
        lines: lines.collect(),
    };
    chart.svg()
}

/// The legend of stacks.
pub(super) fn stacks(names: &[&str]) -> String {
    let each = names.iter().enumerate();
    let each = each.map(|(at, name)| format!("<span>{}{}</span>", key(at), escape(name)));
    format!("<div class=\"legend\">{}</div>", each.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_difference_is_in_the_middle() {
        let svg = dots(&[0.0, 0.1], 0.1);
        assert!(svg.contains("cx=\"50.00%\"") && svg.contains("cx=\"100.00%\""), "{svg}");
    }

    #[test]
    fn shares_fill_what_their_stack_costs() {
        let html = stacked(&[("a".into(), 30.0), ("b".into(), 20.0)], &["a", "b"], 100.0);
        assert!(html.contains("width:30.00%") && html.contains("width:20.00%"), "{html}");
    }

    #[test]
    fn nothing_measured_draws_nothing() {
        assert_eq!(curves(&[("a", Vec::new())], &[]), "");
        assert_eq!(lines(&[]), "");
        assert_eq!(lines(&[("a", vec![0.0])]), "");
    }
}
