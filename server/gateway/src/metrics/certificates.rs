//! Metrics of the certificates that the server obtains itself.

use super::page::Page;
use crate::certificates::status;
use crate::gateway::Gateway;

/// Certificates with a metric of their own: those that expire first.
const MAX_CERTIFICATES: usize = 1000;

pub(super) fn write(page: &mut Page, gateway: &Gateway) {
    let mut all = status(gateway).certificates;
    if all.is_empty() {
        return;
    }
    for (name, help, state) in [
        ("outboard_certificates_valid", "Names with a valid certificate.", "valid"),
        ("outboard_certificates_expired", "Names with an expired certificate.", "expired"),
        ("outboard_certificates_missing", "Names without a certificate.", "missing"),
    ] {
        page.single(name, help, all.iter().filter(|one| one.state == state).count() as u64);
    }
    let failing = all.iter().filter(|one| one.last_error.is_some()).count() as u64;
    page.single("outboard_certificates_failing", "Names whose last attempt has failed.", failing);
    let name = "outboard_certificate_expiry_timestamp_seconds";
    page.metric(name, "When a certificate expires, in seconds since 1970.");
    all.sort_by_key(|one| one.not_after_s);
    for one in all.iter().filter(|one| one.not_after_s.is_some()).take(MAX_CERTIFICATES) {
        page.sample(&[("name", &one.name)], one.not_after_s.unwrap_or_default());
    }
}
