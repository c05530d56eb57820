//! A store of values by key over HTTP: PUT and GET at a fixed rate, answered by a synchronous
//! server and by one with a bounded queue.
//!
//! Its subject, `/v0/entity`, is to come; until then only the published numbers stand here.

use crate::error::Result;
use crate::report::{Report, State};

pub(super) fn run(report: &mut Report) -> Result<()> {
    let what = "the `/v0/entity` store does not exist yet".into();
    report.conclude(State::SubjectMissing { what });
    Ok(())
}
