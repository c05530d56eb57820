//! Wall-clock time for logs and the Date header, and its spelling.

use rustix::time::{ClockId, clock_gettime};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Wall-clock time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wall {
    /// Microseconds since the epoch.
    pub unix_us: u64,
}

impl Wall {
    /// The present time.
    pub fn now() -> Self {
        // Not SystemTime, whose difference to the epoch takes three times as long as the clock.
        let now = clock_gettime(ClockId::Realtime);
        let us = now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1_000);
        Self { unix_us: u64::try_from(us).unwrap_or_default() }
    }

    /// `2026-11-21T05:35:28.123Z`.
    pub fn rfc3339(self) -> String {
        rfc3339(self)
    }

    /// Whole seconds since the epoch.
    pub fn unix_s(self) -> u64 {
        self.unix_us / 1_000_000
    }
}

/// Year, month, day of a day number since 1970 (proleptic Gregorian; H. Hinnant's algorithm).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// `21/Nov/2026:05:35:28 +0000`.
pub(crate) fn common_log_time(wall: Wall) -> String {
    let seconds = wall.unix_s();
    let (year, month, day) = civil(seconds / 86_400);
    let month = MONTHS[(month - 1) as usize];
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000")
}

/// `2026-11-21T05:35:28.123Z`.
pub(crate) fn rfc3339(wall: Wall) -> String {
    let seconds = wall.unix_s();
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let ms = wall.unix_us / 1000 % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days_are_spelled_right() {
        let at = |unix_s: u64| rfc3339(Wall { unix_us: unix_s * 1_000_000 + 5_000 });
        assert_eq!(at(0), "1970-01-01T00:00:00.005Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.005Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00.005Z");
        assert_eq!(at(1_795_239_328), "2026-11-21T05:35:28.005Z");
    }
}
