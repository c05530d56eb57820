//! Health checks of the servers of an upstream: the statuses that count as healthy.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw::{HealthCheck, StatusSet};
use crate::scalar::Fault;

pub(super) fn check(check: &mut HealthCheck, place: &[&str], context: &mut Context<'_>) {
    let statuses = check.written_status.iter();
    for (index, text) in statuses.enumerate().filter(|(_, text)| !StatusSet::is_status(text)) {
        let fault = Fault::new(format!("`{text}` is not a status")).hint("\"200\" or \"2xx\"");
        let index = index.to_string();
        let at = [place, &["health_check", "status", &index]].concat();
        context.value(&at, Kind::BadValue, fault);
    }
    check.status = StatusSet::of(check.written_status.iter().map(String::as_str));
}
