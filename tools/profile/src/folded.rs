//! [`Folded`]: stacks with their counts, the input of flame graphs.
//!
//! One stack per line, outermost frame first: frames separated by `;`, a space, the count.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::process_table::kind_of;

/// The innermost frame of a stack that waits in a system call.
pub const WAITING: &str = "(waiting)";

/// Stacks and their counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Folded(pub BTreeMap<String, u64>);

/// A function's share of all samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The function.
    pub name: String,
    /// Share of the samples in which it was innermost.
    pub own: f64,
    /// Share of the samples in which it occurs.
    pub total: f64,
}

impl Folded {
    /// Parses folded stacks; other lines are skipped.
    pub fn read(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
        let stacks = lines.filter_map(|(stack, count)| Some((stack, count.parse().ok()?)));
        Self::of(stacks.map(|(stack, count)| (stack.to_owned(), count)))
    }

    /// Parses the output of `perf script --fields comm,ip,sym`: a line with the program's name, a
    /// line per frame from the innermost on, an empty line.
    pub fn of_perf(text: &str) -> Self {
        let stacks = text.split("\n\n").filter_map(|sample| {
            let mut lines = sample.trim_matches('\n').lines();
            let mut stack = kind_of(lines.next()?.trim());
            let frames: Vec<&str> = lines
                .filter_map(|line| Some(line.trim_start().split_once(' ')?.1.trim()))
                .collect();
            for frame in frames.iter().rev() {
                stack.push(';');
                stack.push_str(&frame.replace(';', "?"));
            }
            (!frames.is_empty()).then_some((stack, 1))
        });
        Self::of(stacks)
    }

    fn of(stacks: impl Iterator<Item = (String, u64)>) -> Self {
        let mut folded = Self::default();
        for (stack, count) in stacks {
            *folded.0.entry(stack).or_default() += count;
        }
        folded
    }

    /// The folded stacks as text.
    pub fn text(&self) -> String {
        self.0.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.0.values().sum()
    }

    /// Only the stacks that do not wait.
    pub fn computing(&self) -> Self {
        let waits = |stack: &str| stack.ends_with(WAITING);
        let computing = self.0.iter().filter(|(stack, _)| !waits(stack));
        Self(computing.map(|(stack, count)| (stack.clone(), *count)).collect())
    }

    /// Only the stacks of one app, which is the outermost frame.
    pub fn of_app(&self, app: &str) -> Self {
        let is_its = |stack: &str| stack.split(';').next() == Some(app);
        let its = self.0.iter().filter(|(stack, _)| is_its(stack));
        Self(its.map(|(stack, count)| (stack.clone(), *count)).collect())
    }

    /// The functions that were innermost most often, without the app or program around them.
    pub fn heaviest(&self, most: usize) -> Vec<Share> {
        let mut counts = BTreeMap::<&str, (u64, u64)>::new();
        for (stack, count) in &self.0 {
            let frames: Vec<&str> = stack.split(';').skip(1).collect();
            for frame in frames.iter().collect::<BTreeSet<_>>() {
                counts.entry(frame).or_default().1 += count;
            }
            if let Some(innermost) = frames.last() {
                counts.entry(innermost).or_default().0 += count;
            }
        }
        let all = self.samples().max(1) as f64;
        let share = |(name, (own, total)): (&str, (u64, u64))| Share {
            name: name.to_owned(),
            own: own as f64 / all,
            total: total as f64 / all,
        };
        let mut shares: Vec<Share> = counts.into_iter().map(share).collect();
        shares.sort_by(|a, b| b.own.total_cmp(&a.own).then(b.total.total_cmp(&a.total)));
        shares.truncate(most);
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "site;{main} /a b.php;App::run 3\nsite;{main} /a b.php;strlen;(waiting) 2\n";

    #[test]
    fn reading_and_writing_are_inverse() {
        let folded = Folded::read(TEXT);
        assert_eq!(folded.text(), TEXT);
        assert_eq!((folded.samples(), folded.computing().samples()), (5, 3));
        assert_eq!(folded.of_app("other"), Folded::default());
        assert_eq!(folded.of_app("site"), folded);
    }

    #[test]
    fn a_function_that_calls_itself_is_counted_once_a_sample() {
        let heaviest = Folded::read("site;f;f;g 1\nsite;f 3\n").heaviest(5);
        let share = |name: &str, own, total| Share { name: name.into(), own, total };
        assert_eq!(heaviest, [share("f", 0.75, 1.0), share("g", 0.25, 0.25)]);
    }

    #[test]
    fn perf_prints_the_innermost_frame_first() {
        let sample = |worker| format!("app/{worker} \n\t  ffff1 write\n\t  7f00 main\n\n");
        let folded = Folded::of_perf(&[sample(1), sample(2)].concat());
        assert_eq!(folded.text(), "app worker;main;write 2\n");
    }
}
