//! A flame graph as nested boxes of HTML: outermost frame on top, as wide as its share of samples.
//!
//! It needs no script: a click on a frame makes its address the page's target, and the style sheet
//! shows what is below the target over the whole width. One graph can show two profiles; a frame's
//! colour then says in which of them it has the larger share.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::folded::Folded;
use crate::page::{STYLE as PAGE_STYLE, escape};

/// Frames with a smaller share of all samples are omitted.
const SHARE_MIN: f64 = 0.001;

/// Deeper frames are omitted.
const DEPTH_MAX: usize = 96;

/// Colours of frames in `flame.css`.
const COLOURS: u32 = 6;

/// A difference of shares from which a frame has the full colour.
const DIFFERENCE_MAX: f64 = 0.10;

/// The style sheet of graphs.
pub const STYLE: &str = include_str!("flame.css");

/// The graph of one profile; `id` distinguishes its frames from those of other graphs on the page.
pub fn graph(folded: &Folded, id: &str) -> String {
    draw(&Node::of(folded, &Folded::default()), id, &Look::One)
}

/// Two profiles in one graph, as wide as the mean of both, coloured by the difference from `a` to
/// `b`.
pub fn difference(a: &Folded, b: &Folded, id: &str) -> String {
    draw(&Node::of(a, b), id, &Look::Difference)
}

/// A self-contained page with a title, a description and graphs, each with its title.
pub fn page(title: &str, about: &str, graphs: &[(String, String)]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>{PAGE_STYLE}body{{max-width:72rem}}\n{STYLE}</style>\n<main><h1>{title}</h1>\
         <p class=\"soft\">{}</p>\n",
        escape(about),
        title = escape(title)
    );
    for (title, graph) in graphs {
        let _ = writeln!(html, "<section><h2>{}</h2>{graph}</section>", escape(title));
    }
    html + "</main>\n"
}

/// The meaning of colours.
enum Look {
    /// The function.
    One,
    /// The profile in which the frame has more samples.
    Difference,
}

/// A frame with its callees and its counts in both profiles.
#[derive(Debug, Default)]
struct Node<'a> {
    counts: [u64; 2],
    children: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn of(a: &'a Folded, b: &'a Folded) -> Self {
        let mut root = Self::default();
        for (which, folded) in [a, b].into_iter().enumerate() {
            for (stack, count) in &folded.0 {
                let mut at = &mut root;
                at.counts[which] += count;
                for frame in stack.split(';').take(DEPTH_MAX) {
                    at = at.children.entry(frame).or_default();
                    at.counts[which] += count;
                }
            }
        }
        root
    }

    /// Its shares of the samples of `root`.
    fn shares(&self, root: &Self) -> [f64; 2] {
        [0, 1].map(|which| self.counts[which] as f64 / root.counts[which].max(1) as f64)
    }

    /// Its share of the graph's width: the mean over the profiles that have samples.
    fn width(&self, root: &Self) -> f64 {
        let profiles = root.counts.iter().filter(|count| **count > 0).count().max(1);
        self.shares(root).iter().sum::<f64>() / profiles as f64
    }
}

/// Renders frames and numbers them.
struct Drawing<'a> {
    root: &'a Node<'a>,
    id: &'a str,
    look: &'a Look,
    number: usize,
    html: String,
}

fn draw(root: &Node<'_>, id: &str, look: &Look) -> String {
    if root.counts == [0, 0] {
        return "<p class=\"quiet\">Not one sample: nothing was running.</p>".into();
    }
    let mut drawing = Drawing { root, id, look, number: 0, html: String::new() };
    drawing.children(root);
    let samples = match look {
        Look::One => format!("{} samples", root.counts[0]),
        Look::Difference => format!(
            "{} and {} samples; red is more in the second, blue less",
            root.counts[0], root.counts[1]
        ),
    };
    format!(
        "<div class=\"flame\"><p>{samples}; a click shows what is below, \
         <a href=\"#{id}\">all of it</a></p><div class=\"row\">{}</div></div>",
        drawing.html
    )
}

impl<'a> Drawing<'a> {
    /// The children of a frame, the widest first.
    fn children(&mut self, parent: &Node<'a>) {
        let width = |node: &Node<'_>| node.width(self.root);
        let mut children: Vec<(&&str, &Node<'_>)> =
            parent.children.iter().filter(|(_, node)| width(node) >= SHARE_MIN).collect();
        children.sort_by(|a, b| width(b.1).total_cmp(&width(a.1)));
        let whole = if std::ptr::eq(parent, self.root) { 1.0 } else { width(parent) };
        for (name, node) in children {
            let percent = 100.0 * width(node) / whole;
            self.number += 1;
            let _ = write!(
                self.html,
                "<div class=\"f\" id=\"{0}-{1}\" style=\"width:{percent:.2}%\">\
                 <a href=\"#{0}-{1}\" class=\"{2}\" {3}title=\"{4} {5}\">{4}</a>",
                self.id,
                self.number,
                self.colour(name),
                self.strength(node),
                escape(name),
                self.words(node)
            );
            if !node.children.is_empty() {
                self.html.push_str("<div class=\"row\">");
                self.children(node);
                self.html.push_str("</div>");
            }
            self.html.push_str("</div>");
        }
    }

    fn words(&self, node: &Node<'_>) -> String {
        let [a, b] = node.shares(self.root).map(|share| format!("{:.1} %", share * 100.0));
        match self.look {
            Look::One => a,
            Look::Difference => format!("{a} and {b}"),
        }
    }

    fn colour(&self, name: &str) -> String {
        match self.look {
            Look::Difference => "d".into(),
            Look::One if name.starts_with('(') => "wait".into(),
            Look::One => format!("f{}", hash(name) % COLOURS),
        }
    }

    /// The difference as the share of a colour in the frame's colour.
    fn strength(&self, node: &Node<'_>) -> String {
        let Look::Difference = self.look else { return String::new() };
        let [a, b] = node.shares(self.root);
        let strength = ((b - a) / DIFFERENCE_MAX).clamp(-1.0, 1.0) * 100.0;
        let colour = if strength > 0.0 { "more" } else { "less" };
        format!("style=\"--with:var(--{colour});--much:{:.0}%\" ", strength.abs())
    }
}

/// Maps a name to the same colour in every graph (FNV-1a).
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_as_wide_as_its_share_of_the_one_around_it() {
        let html = graph(&Folded::read("site;a;b 1\nsite;a 1\nsite;c 2\n"), "x");
        let widths = html.matches("style=\"width:50.00%\"").count();
        assert_eq!(widths, 3, "a and c of site, b of a: {html}");
        assert!(
            html.contains("title=\"a 50.0 %\"") && html.contains("title=\"b 25.0 %\""),
            "{html}"
        );
    }

    #[test]
    fn growth_is_coloured_by_its_amount() {
        let (a, b) = (Folded::read("s;a 9\ns;b 1\n"), Folded::read("s;a 5\ns;b 5\n"));
        let html = difference(&a, &b, "x");
        assert!(
            html.contains("--with:var(--more);--much:100%\" title=\"b 10.0 % and 50.0 %\""),
            "{html}"
        );
        assert!(
            html.contains("--with:var(--less);--much:100%\" title=\"a 90.0 % and 50.0 %\""),
            "{html}"
        );
    }

    #[test]
    fn names_stay_text() {
        let html = page("<t>", "&", &[("g".into(), graph(&Folded::read("s;<b>\"x 1\n"), "x"))]);
        assert!(html.contains("&lt;b&gt;&quot;x") && !html.contains("<b>\"x"), "{html}");
    }
}
