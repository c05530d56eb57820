//! A store whose memory holds less than a tenth of its records: most reads go to files, and every
//! write soon does.

use super::rates::RATE;
use super::store::{CONNECTIONS, fill, get, put, slice_seconds};
use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::report::Report;
use crate::slice::Turns;
use crate::stack::Stack;

pub(super) const NAME: &str = "outboard, a tenth in memory";
/// Records are 3 MiB with their names.
pub(super) const SETTINGS: &str = "cache_size = \"256 KiB\"\nwrite_buffer = \"256 KiB\"\n";

pub(super) fn run(lab: &Lab, report: &mut Report, stack: &Stack) -> Result<()> {
    fill(stack)?;
    let seconds = slice_seconds(lab);
    let slices = if lab.effort.is_quick() { 3 } else { lab.effort.slices };
    for (word, request) in [("PUT", put()), ("GET", get())] {
        let turns = Turns { slices, shared: None };
        let rounds = turns.take(lab, &[stack], |stack| {
            generator::load_at(stack, &request, CONNECTIONS, seconds, RATE / 3.0)
        })?;
        report.add_rounds(&format!("{word} 5,000/s c=64, a tenth in memory"), &rounds);
    }
    Ok(())
}
