//! What is drawn in the page: bars with whiskers, dots, stacked shares, lines over slices.
//!
//! All positions are percentages of a width that is only known to the reader's window.

use std::fmt::Write as _;

use super::{escape, number};
use crate::comparison::change;
use crate::statistics::{Estimate, middle};

/// Colours in `style.css`.
const COLOURS: usize = 6;

/// Colours of processes, likewise.
const PROCESS_COLOURS: usize = 6;

/// Height of the lines' chart in px, without its words.
const LINES_PX: f64 = 110.0;

/// The mark of a stack's colour.
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

/// Each pair's difference of logarithms as a dot around zero, and the interval of their middle.
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
        // Up and down in turns, so that dots beside each other stay apart.
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

/// What the positions of [`dots`] mean.
pub(super) fn ratio_axis(most: f64) -> String {
    let words = [-most, -most / 2.0, 0.0, most / 2.0, most].map(|at| match at {
        0.0 => "equal".to_owned(),
        _ => change(at.exp()),
    });
    let words = words.map(|word| format!("<span>{word}</span>"));
    format!("<div class=\"axis\">{}</div>", words.concat())
}

/// Parts of a whole in µs, one after the other, each kind in its colour.
pub(super) fn stacked(parts: &[(String, f64)], kinds: &[&str], most: f64) -> String {
    let mut html = "<div class=\"stacked\">".to_owned();
    for (kind, us) in parts {
        let colour = kinds.iter().position(|other| other == kind).unwrap_or(0) % PROCESS_COLOURS;
        let (kind, us_words) = (escape(kind), number(*us));
        let share = 100.0 * us / most;
        // What does not fit is left to the title.
        let words = if share > 6.0 { &us_words } else { "" };
        let _ = write!(
            html,
            "<i class=\"p{colour}\" style=\"width:{share:.2}%\" title=\"{kind} {us_words} µs\">\
             {words}</i>"
        );
    }
    html + "</div>"
}

/// Which colour is which kind of process.
pub(super) fn legend(kinds: &[&str]) -> String {
    let each = kinds.iter().enumerate().map(|(at, kind)| {
        format!("<span><i class=\"key p{}\"></i>{}</span>", at % PROCESS_COLOURS, escape(kind))
    });
    format!("<div class=\"legend\">{}</div>", each.collect::<String>())
}

/// One line per stack, from zero to the largest value.
pub(super) fn lines(series: &[Vec<f64>]) -> String {
    let most = series.iter().flatten().fold(0.0_f64, |most, value| most.max(*value));
    let slices = series.iter().map(Vec::len).max().unwrap_or(0);
    if most <= 0.0 || slices == 0 {
        return String::new();
    }
    let y = |value: f64| 4.0 + LINES_PX * (1.0 - value / most);
    // Left of the first slice is room for the words.
    let x = |slice: usize| 10.0 + 90.0 * (slice as f64 + 0.5) / slices as f64;
    let mut svg = "<svg class=\"lines\" role=\"img\">".to_owned();
    for share in [0.0, 0.5, 1.0] {
        let at = y(most * share);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"2\" y=\"{:.1}\">{}</text>",
            at + 12.0,
            if share > 0.0 { number(most * share) } else { String::new() }
        );
    }
    for (stack, values) in series.iter().enumerate() {
        let colour = stack % COLOURS;
        for (slice, pair) in values.windows(2).enumerate() {
            let _ = write!(
                svg,
                "<line class=\"c{colour}\" x1=\"{:.2}%\" y1=\"{:.1}\" x2=\"{:.2}%\" y2=\"{:.1}\"/>",
                x(slice),
                y(pair[0]),
                x(slice + 1),
                y(pair[1])
            );
        }
        for (slice, value) in values.iter().enumerate() {
            let _ = write!(
                svg,
                "<circle class=\"c{colour}\" cx=\"{:.2}%\" cy=\"{:.1}\" r=\"2.5\"><title>{}</title>\
                 </circle>",
                x(slice),
                y(*value),
                number(*value)
            );
        }
    }
    svg + "</svg>"
}

/// Height of the curves' chart in px, without its words.
const CURVES_PX: f64 = 180.0;

/// A curve per stack, of places from 0 to 1 and times in ms, which stand on a logarithmic scale;
/// `names` are places of the axis.
pub(super) fn curves(curves: &[Vec<(f64, f64)>], names: &[(f64, String)]) -> String {
    let values = || curves.iter().flatten().map(|&(_, ms)| ms).filter(|ms| *ms > 0.0);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if !low.is_finite() {
        return String::new();
    }
    let first = low.log10().floor();
    let last = high.log10().ceil().max(first + 1.0);
    let y = |ms: f64| {
        let decade = ms.max(f64::MIN_POSITIVE).log10().max(first);
        6.0 + CURVES_PX * (last - decade) / (last - first)
    };
    // Left of the curves is room for the words, and right of them for half a word.
    let x = |place: f64| 12.0 + 84.0 * place;
    let mut svg = "<svg class=\"curves\" role=\"img\">".to_owned();
    for decade in first as i32..=last as i32 {
        let ms = 10_f64.powi(decade);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"12%\" x2=\"100%\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <text x=\"2\" y=\"{1:.1}\">{2}</text>",
            y(ms),
            y(ms) + 4.0,
            time(ms)
        );
    }
    for (place, name) in names {
        let _ = write!(
            svg,
            "<text class=\"name\" x=\"{:.2}%\" y=\"{:.1}\">{}</text>",
            x(*place),
            CURVES_PX + 24.0,
            escape(name)
        );
    }
    for (stack, points) in curves.iter().enumerate() {
        let colour = stack % COLOURS;
        for pair in points.windows(2) {
            let _ = write!(
                svg,
                "<line class=\"c{colour}\" x1=\"{:.2}%\" y1=\"{:.1}\" x2=\"{:.2}%\" y2=\"{:.1}\"/>",
                x(pair[0].0),
                y(pair[0].1),
                x(pair[1].0),
                y(pair[1].1)
            );
        }
        for &(place, ms) in points {
            let _ = write!(
                svg,
                "<circle class=\"c{colour}\" cx=\"{:.2}%\" cy=\"{:.1}\" r=\"2.5\"><title>{} ms</title>\
                 </circle>",
                x(place),
                y(ms),
                number(ms)
            );
        }
    }
    svg + "</svg>"
}

/// A power of ten of ms in a word.
fn time(ms: f64) -> String {
    match ms {
        1_000.0.. => format!("{} s", ms / 1e3),
        1.0.. => format!("{ms} ms"),
        _ => format!("{} µs", (ms * 1e3).round()),
    }
}

/// Which colour is which stack.
pub(super) fn stacks(names: &[&str]) -> String {
    let each = names.iter().enumerate();
    let each = each.map(|(at, name)| format!("<span>{}{}</span>", key(at), escape(name)));
    format!("<div class=\"legend\">{}</div>", each.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_nothing_is_in_the_middle() {
        let svg = dots(&[0.0, 0.1], 0.1);
        assert!(svg.contains("cx=\"50.00%\"") && svg.contains("cx=\"100.00%\""), "{svg}");
    }

    #[test]
    fn shares_fill_what_their_stack_costs() {
        let html = stacked(&[("a".into(), 30.0), ("b".into(), 20.0)], &["a", "b"], 100.0);
        assert!(html.contains("width:30.00%") && html.contains("width:20.00%"), "{html}");
    }

    #[test]
    fn ten_times_as_long_is_a_decade_higher() {
        let svg = curves(&[vec![(0.0, 1.0), (1.0, 10.0)]], &[(0.0, "first".into())]);
        assert!(svg.contains("x1=\"12.00%\" y1=\"186.0\" x2=\"96.00%\" y2=\"6.0\""), "{svg}");
        assert!(svg.contains("1 ms") && svg.contains("10 ms") && svg.contains("first"), "{svg}");
    }

    #[test]
    fn nothing_measured_draws_nothing() {
        assert_eq!(curves(&[Vec::new()], &[]), "");
        assert_eq!(lines(&[]), "");
        assert_eq!(lines(&[vec![0.0]]), "");
    }
}
