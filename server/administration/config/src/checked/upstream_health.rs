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

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, valid};
    use crate::*;

    #[test]
    fn statuses_that_count_as_healthy_are_numbers_and_classes() {
        let text = |status: &str| {
            format!(
                "[upstream.api]\nservers = [\"a:1\"]\nhealth_check = {{ status = [{status}] }}\n{APP}"
            )
        };
        let config = valid(&text("\"204\", \"3xx\""));
        let status = &config.upstreams[0].health_check.as_ref().unwrap().status;
        assert!(status.contains(204) && status.contains(307) && !status.contains(200));
        for bad in ["2x", "600", "99", "ok", ""] {
            let text = text(&format!("\"200\", \"{bad}\""));
            assert_error(&text, Kind::BadValue, 3, &format!("`{bad}` is not a status"));
        }
    }
}
