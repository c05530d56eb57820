//! HTTP-dates as seconds since 1970 (RFC 9110 5.6.7), and [`DateCache`], the Date field formatted
//! once a second (RFC 9110 6.6.1). Pure: the caller gives the time.

use std::io::Write;
use std::time::{Duration, SystemTime};

const LINE_LEN: usize = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".len();

/// 9999-12-31T23:59:59Z: the format has four digits for the year.
pub const UNIX_SECONDS_MAX: u64 = 253_402_300_799;

/// Reads a date in any of its three forms; `None` for anything else and for dates before 1970.
pub fn parse_http_date(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim();
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
}

/// Formats an IMF-fixdate, at most the end of the year 9999.
///
/// ```
/// use outboard_http_semantics::{format_http_date, parse_http_date};
///
/// assert_eq!(format_http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
/// assert_eq!(parse_http_date(b"Sunday, 06-Nov-94 08:49:37 GMT"), Some(784_111_777));
/// ```
pub fn format_http_date(unix_seconds: u64) -> String {
    http_date(unix_seconds).to_string()
}

fn http_date(unix_seconds: u64) -> httpdate::HttpDate {
    let since_epoch = Duration::from_secs(unix_seconds.min(UNIX_SECONDS_MAX));
    (SystemTime::UNIX_EPOCH + since_epoch).into()
}

/// The Date field of the current second; one per I/O thread.
#[derive(Debug)]
pub struct DateCache {
    unix_seconds: u64,
    line: [u8; LINE_LEN],
}

impl DateCache {
    /// A cache of the given second.
    pub fn new(unix_seconds: u64) -> Self {
        Self { unix_seconds, line: format_line(unix_seconds) }
    }

    /// `Date: … CRLF` for the given second since 1970 (UTC).
    pub fn line(&mut self, unix_seconds: u64) -> &[u8] {
        if unix_seconds != self.unix_seconds {
            *self = Self::new(unix_seconds);
        }
        &self.line
    }

    /// The value alone, as in `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub fn value(&mut self, unix_seconds: u64) -> &[u8] {
        let line = self.line(unix_seconds);
        &line["Date: ".len()..LINE_LEN - "\r\n".len()]
    }
}

fn format_line(unix_seconds: u64) -> [u8; LINE_LEN] {
    let mut line = [b' '; LINE_LEN];
    write!(&mut line[..], "Date: {}\r\n", http_date(unix_seconds))
        .expect("an IMF-fixdate is always 29 bytes");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_follows_the_second() {
        let mut cache = DateCache::new(0);
        assert_eq!(cache.line(0), b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
        assert_eq!(cache.line(784_111_777), b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        assert_eq!(cache.value(951_782_400), b"Tue, 29 Feb 2000 00:00:00 GMT");
    }

    #[test]
    fn a_time_beyond_four_digit_years_is_clamped() {
        assert_eq!(DateCache::new(0).value(u64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
