//! The parts of experiments that a quick run omits.

use crate::lab::Lab;
use crate::report::Report;

/// The numbers of connections to measure: all, or the first in a quick run, with a note.
pub(super) fn connection_counts<'a>(
    lab: &Lab,
    report: &mut Report,
    all: &'a [usize],
) -> &'a [usize] {
    if !lab.effort.is_quick() {
        return all;
    }
    let (measured, left_out) = all.split_at(1);
    let name = report.sections.last().map_or("", |section| &section.name);
    report.notes.push(format!("{name}: quick, so c = {measured:?} and not {left_out:?}"));
    measured
}
