//! HTTP-dates (RFC 9110 5.6.7) as seconds since 1970. Pure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The end of the year 9999: the format has four digits for the year.
const SECONDS_MAX: u64 = 253_402_300_799;

/// Reads a date in any of its three forms; `None` for anything else and for dates before 1970.
pub(crate) fn parse(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim();
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// Writes an IMF-fixdate.
pub fn http_date(unix_s: u64) -> String {
    let date: SystemTime = UNIX_EPOCH + Duration::from_secs(unix_s.min(SECONDS_MAX));
    httpdate::fmt_http_date(date)
}
