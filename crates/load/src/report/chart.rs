//! [`Chart`]: lines over two axes as inline SVG, coloured by the page's style sheet.

use super::count;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 40.0;
/// Values at or below are drawn here where the axis is logarithmic.
const LOG_FLOOR: f64 = 1e-9;

/// How values become places along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// From 0 to the value.
    Linear(f64),
    /// Both above 0.
    Log(f64, f64),
}

impl Scale {
    /// From a power of ten to one of ten, around all values above 0.
    pub(super) fn log_around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| *value > LOG_FLOOR)
            .fold((f64::INFINITY, LOG_FLOOR), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let low = if low.is_finite() { 10_f64.powf(low.log10().floor()) } else { 0.1 };
        let high = 10_f64.powf(high.log10().ceil()).max(low * 10.0);
        Scale::Log(low, high)
    }

    /// From 0 to something round above all values.
    pub(super) fn linear_to(values: impl Iterator<Item = f64>) -> Self {
        let high = values.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let step = 10_f64.powf(high.log10().floor());
        let round = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * step);
        Scale::Linear(round.into_iter().find(|&round| round >= high).unwrap_or(high))
    }

    /// From 0 to 1.
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
pub(super) struct Line {
    pub(super) name: &'static str,
    /// Which of the page's line colours.
    pub(super) colour: u8,
    pub(super) points: Vec<(f64, f64)>,
}

/// Lines with what is written around them.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) x: Scale,
    pub(super) y: Scale,
    /// Named places of the x axis; empty for the numbers of its scale.
    pub(super) x_names: Vec<(f64, String)>,
    pub(super) x_unit: &'static str,
    pub(super) y_unit: &'static str,
    pub(super) lines: Vec<Line>,
}

impl Chart {
    /// A `figure` of HTML.
    pub(super) fn html(&self) -> String {
        let mut out = format!("<figure><figcaption>{}", self.title);
        if self.lines.len() > 1 {
            for line in &self.lines {
                let _ = write!(out, " <span class=\"key c{}\">{}</span>", line.colour, line.name);
            }
        }
        let _ = write!(
            out,
            "</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            self.title
        );
        self.axes(&mut out);
        for line in &self.lines {
            self.line(line, &mut out);
        }
        out.push_str("</svg></figure>\n");
        out
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y_of(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self, out: &mut String) {
        for value in self.y.ticks() {
            let y = self.y_of(value);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                number(value)
            );
        }
        let numbers = || self.x.ticks().into_iter().map(|value| (value, number(value))).collect();
        let names = if self.x_names.is_empty() { numbers() } else { self.x_names.clone() };
        for (value, name) in names {
            let (x, y) = (self.x_of(value), HEIGHT - BOTTOM + 18.0);
            let _ = writeln!(
                out,
                "<text class=\"tick middle\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>"
            );
        }
        let _ = writeln!(
            out,
            "<text class=\"unit end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"unit\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            WIDTH - RIGHT,
            HEIGHT - 5.0,
            self.x_unit,
            LEFT + 6.0,
            TOP - 2.0,
            self.y_unit
        );
    }

    fn line(&self, line: &Line, out: &mut String) {
        let _ = write!(out, "<polyline class=\"line c{}\" points=\"", line.colour);
        for &(x, y) in &line.points {
            let _ = write!(out, "{:.1},{:.1} ", self.x_of(x), self.y_of(y));
        }
        out.push_str("\"/>\n");
        for &(x, y) in &line.points {
            let _ = writeln!(
                out,
                "<circle class=\"dot c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"6\"><title>{}: {} {}</title>\
                 </circle>",
                line.colour,
                self.x_of(x),
                self.y_of(y),
                line.name,
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
    fn numbers_are_short() {
        let shown = [0.0, 0.05, 0.1, 2.5, 10.0, 12_500.0].map(number);
        assert_eq!(shown, ["0", "0.05", "0.1", "2.5", "10", "12,500"]);
    }
}
