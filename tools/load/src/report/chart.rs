//! [`Chart`]: lines over two axes as inline SVG, for the pages of `outboard bench` and the lab.
//!
//! Horizontal positions are percentages, since the width depends on the reader's window; text keeps
//! its size. The style sheet of the page has the colours `c0`, `c1`, … and the classes `line`,
//! `dot`, `grid`, `tick`, `end` and `middle`.

use super::units::count;
use outboard_profile::page::escape;
use std::fmt::Write;

/// Room for the labels of the y axis, in per cent of the width.
const LEFT: f64 = 11.0;
/// Room for half a label of the x axis.
const RIGHT: f64 = 3.0;
/// Room above the axes in px, for the unit.
const TOP: f64 = 16.0;
/// Room below the axes in px, for the labels of the x axis.
const BOTTOM: f64 = 22.0;
/// On a logarithmic axis, smaller values are drawn here.
const LOG_FLOOR: f64 = 1e-9;

/// Maps values to positions along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// From 0 to this value.
    Linear(f64),
    /// From one value to another, both above 0.
    Log(f64, f64),
}

impl Scale {
    /// Between powers of ten, around all values above 0.
    pub fn log_around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| *value > LOG_FLOOR)
            .fold((f64::INFINITY, LOG_FLOOR), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let low = if low.is_finite() { 10_f64.powf(low.log10().floor()) } else { 0.1 };
        let high = 10_f64.powf(high.log10().ceil()).max(low * 10.0);
        Scale::Log(low, high)
    }

    /// From 0 to a round number above all values.
    pub fn linear_to(values: impl Iterator<Item = f64>) -> Self {
        let high = values.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let step = 10_f64.powf(high.log10().floor());
        let round = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * step);
        Scale::Linear(round.into_iter().find(|&round| round >= high).unwrap_or(high))
    }

    /// The position from 0 to 1.
    fn place(self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear(high) => value / high,
            Scale::Log(low, high) => (value.max(low) / low).ln() / (high / low).ln(),
        };
        place.clamp(0.0, 1.0)
    }

    fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear(high) => (0..=4).map(|at| high * f64::from(at) / 4.0).collect(),
            Scale::Log(low, high) => {
                let powers = (high / low).log10().round() as i32;
                (0..=powers).map(|power| low * 10_f64.powi(power)).collect()
            }
        }
    }
}

/// One line.
pub struct Line {
    /// Its name, shown with its points.
    pub name: String,
    /// The number of its colour in the style sheet.
    pub colour: usize,
    /// Its points in order.
    pub points: Vec<(f64, f64)>,
}

/// Lines with axes.
pub struct Chart {
    /// The height of the axes in px.
    pub height_px: f64,
    /// The x axis.
    pub x: Scale,
    /// The y axis.
    pub y: Scale,
    /// Labels of the x axis; empty for none.
    pub x_labels: Vec<(f64, String)>,
    /// The unit of the y axis.
    pub y_unit: &'static str,
    /// The lines.
    pub lines: Vec<Line>,
}

impl Chart {
    /// Renders the `svg` element.
    pub fn svg(&self) -> String {
        let height = TOP + self.height_px + BOTTOM;
        let mut out = format!("<svg class=\"chart\" height=\"{height}\" role=\"img\">\n");
        self.axes(&mut out);
        self.lines.iter().for_each(|line| self.line(line, &mut out));
        out + "</svg>\n"
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (100.0 - LEFT - RIGHT)
    }

    fn y_of(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.place(value)) * self.height_px
    }

    fn axes(&self, out: &mut String) {
        for value in self.y.ticks() {
            let y = self.y_of(value);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}%\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick end\" x=\"{:.1}%\" y=\"{:.1}\">{}</text>",
                LEFT - 1.0,
                y + 4.0,
                number(value)
            );
        }
        for (value, label) in &self.x_labels {
            let _ = writeln!(
                out,
                "<text class=\"tick middle\" x=\"{:.2}%\" y=\"{:.1}\">{}</text>",
                self.x_of(*value),
                TOP + self.height_px + 17.0,
                escape(label)
            );
        }
        let _ = writeln!(out, "<text class=\"tick\" x=\"{LEFT}%\" y=\"10\">{}</text>", self.y_unit);
    }

    fn line(&self, line: &Line, out: &mut String) {
        let colour = line.colour;
        for pair in line.points.windows(2) {
            let _ = writeln!(
                out,
                "<line class=\"line c{colour}\" x1=\"{:.2}%\" y1=\"{:.1}\" x2=\"{:.2}%\" y2=\"{:.1}\"/>",
                self.x_of(pair[0].0),
                self.y_of(pair[0].1),
                self.x_of(pair[1].0),
                self.y_of(pair[1].1)
            );
        }
        for &(x, y) in &line.points {
            let _ = writeln!(
                out,
                "<circle class=\"dot c{colour}\" cx=\"{:.2}%\" cy=\"{:.1}\" r=\"3\"><title>{}: {} {}\
                 </title></circle>",
                self.x_of(x),
                self.y_of(y),
                escape(&line.name),
                number(y),
                self.y_unit
            );
        }
    }
}

/// A number with no more digits than an axis needs.
fn number(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".to_owned(),
        _ if value >= 100.0 => count(value.round() as u64),
        _ if value >= 1.0 => {
            format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => {
            let digits = (1.0 - value.log10().floor()).clamp(1.0, 6.0) as usize;
            let text = format!("{value:.digits$}");
            text.trim_end_matches('0').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_values() {
        assert_eq!(Scale::linear_to([340.0, 12.0].into_iter()), Scale::Linear(500.0));
        let Scale::Log(low, high) = Scale::log_around([0.0, 0.3, 45.0].into_iter()) else {
            panic!("it is logarithmic");
        };
        assert!((low - 0.1).abs() < 1e-9 && (high - 100.0).abs() < 1e-9, "{low} {high}");
        assert_eq!(Scale::Log(0.1, 100.0).ticks().len(), 4);
    }

    #[test]
    fn nothing_is_drawn_outside_of_the_axes() {
        let scale = Scale::Log(0.1, 100.0);
        assert_eq!([scale.place(0.0), scale.place(1e9)], [0.0, 1.0]);
        assert!(Scale::log_around(std::iter::empty()).ticks().iter().all(|tick| tick.is_finite()));
        assert!(Scale::linear_to(std::iter::empty()).place(0.0).is_finite());
    }

    #[test]
    fn ten_times_as_long_is_a_decade_higher() {
        let points = vec![(0.0, 1.0), (1.0, 10.0)];
        let chart = Chart {
            height_px: 100.0,
            x: Scale::Linear(1.0),
            y: Scale::Log(1.0, 10.0),
            x_labels: vec![(0.0, "first".to_owned())],
            y_unit: "ms",
            lines: vec![Line { name: "a".to_owned(), colour: 0, points }],
        };
        let svg = chart.svg();
        assert!(svg.contains("x1=\"11.00%\" y1=\"116.0\" x2=\"97.00%\" y2=\"16.0\""), "{svg}");
        assert!(svg.contains(">first<"), "{svg}");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.05, 0.1, 2.5, 10.0, 12_500.0].map(number);
        assert_eq!(shown, ["0", "0.05", "0.1", "2.5", "10", "12,500"]);
    }
}
