//! The state of a name, as operators see it.

use crate::name::Name;
use crate::plan::{Step, Time};
use outboard_admin_api::certificates::Certificate;

/// See the module.
pub(crate) fn status(name: &Name, step: Step, now_s: Time) -> Certificate {
    let credential = name.credential();
    let facts = credential.as_ref().map(|credential| credential.facts());
    let state = match facts {
        None => "missing",
        Some(facts) if facts.not_after_s <= now_s => "expired",
        Some(_) => "valid",
    };
    Certificate {
        name: name.text.clone(),
        state: state.to_owned(),
        issuer: facts.map(|facts| facts.issuer.clone()),
        not_after_s: facts.map(|facts| facts.not_after_s),
        next_attempt_s: Some(match step {
            Step::Obtain => now_s,
            Step::Wait(at_s) => at_s,
        }),
        last_error: name.record.borrow().error.clone(),
    }
}
