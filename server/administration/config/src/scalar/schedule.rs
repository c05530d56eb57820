//! Schedules of recurring tasks: a crontab(5) expression or an interval. All in UTC.

use super::kind::{Fault, Scalar, Written};
use super::quantity::Period;

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// This many milliseconds after the last time.
    Every(u64),
    /// At each minute that the five fields match.
    Cron(Box<Cron>),
}

/// The five fields, each as a set of numbers, and the original text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    line: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// From Sunday, 0, to Saturday, 6.
    weekdays: u64,
    /// If both day fields are restricted, a day matches either (crontab(5)).
    either_day: bool,
}

const MINUTE_S: u64 = 60;
const DAY_S: u64 = 86_400;

/// A period with every combination of date and weekday, including 29 February.
const HORIZON_DAYS: u64 = 366 * 41;

impl Schedule {
    /// The next time after `now_ms`, both in ms since the epoch; `None` for a date that never occurs.
    pub fn next_after(&self, now_ms: u64) -> Option<u64> {
        match self {
            Self::Every(ms) => Some(now_ms + ms),
            Self::Cron(cron) => cron.next_after(now_ms / 1000).map(|s| s * 1000),
        }
    }
}

impl Cron {
    fn next_after(&self, now_s: u64) -> Option<u64> {
        let first = (now_s / MINUTE_S + 1) * MINUTE_S;
        (first / DAY_S..first / DAY_S + HORIZON_DAYS).filter(|day| self.has_day(*day)).find_map(
            |day| {
                let from = first.saturating_sub(day * DAY_S) / MINUTE_S;
                let minute = (from..DAY_S / MINUTE_S)
                    .find(|minute| has(self.hours, minute / 60) && has(self.minutes, minute % 60));
                minute.map(|minute| day * DAY_S + minute * MINUTE_S)
            },
        )
    }

    /// Whether the expression matches that day since the epoch, which was a Thursday.
    fn has_day(&self, day: u64) -> bool {
        let (month, date) = date(day);
        let by_date = has(self.days, date);
        let by_weekday = has(self.weekdays, (day + 4) % 7);
        has(self.months, month)
            && if self.either_day { by_date || by_weekday } else { by_date && by_weekday }
    }
}

fn has(set: u64, number: u64) -> bool {
    set & 1 << number != 0
}

/// Month and day of the month of a day since the epoch (H. Hinnant, "chrono-compatible low-level
/// date algorithms", `civil_from_days`).
fn date(day: u64) -> (u64, u64) {
    let of_era = (day + 719_468) % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    (if month < 10 { month + 3 } else { month - 9 }, date)
}

/// The name of each field in messages, with its first and last number.
const FIELDS: [(&str, u64, u64); 5] =
    [("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7)];

fn cron(text: &str) -> Result<Cron, Fault> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let Ok([minute, hour, day, month, weekday]) = <[&str; 5]>::try_from(words) else {
        return Err(Schedule::unexpected());
    };
    let field = |word: &str, at: usize| {
        let (name, first, last) = FIELDS[at];
        set(word, first, last).ok_or_else(|| {
            Fault::new(format!("`{word}` is not a valid {name} ({first} to {last})"))
                .hint("write a number, a list 1,5, a range 1-5, or a step */5")
        })
    };
    let weekdays = field(weekday, 4)?;
    Ok(Cron {
        minutes: field(minute, 0)?,
        hours: field(hour, 1)?,
        days: field(day, 2)?,
        months: field(month, 3)?,
        // Sunday is 0 and 7.
        weekdays: weekdays & 0x7f | weekdays >> 7,
        either_day: !day.starts_with('*') && !weekday.starts_with('*'),
        line: text.to_owned(),
    })
}

/// The numbers of a field; `None` if it is invalid.
fn set(word: &str, first: u64, last: u64) -> Option<u64> {
    word.split(',').try_fold(0, |set, part| {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (first, last),
            Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
            None => {
                let number = range.parse().ok()?;
                (number, if step == 1 { number } else { last })
            }
        };
        let is_within = first <= from && from <= to && to <= last;
        is_within.then(|| (from..=to).step_by(step).fold(set, |set, number| set | 1 << number))
    })
}

impl Scalar for Schedule {
    const NAME: &'static str = "schedule";
    const EXPECTED: &'static str =
        "an interval such as \"every 30s\", or minute, hour, day, month and weekday: \"0 3 * * *\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        let Some(interval) = text.trim().strip_prefix("every ") else {
            return cron(text).map(|cron| Self::Cron(Box::new(cron)));
        };
        match Period::read(Written::Text(interval.trim()))?.0 {
            ms if ms < 100 => Err(Fault::new("the shortest interval is 100ms")),
            ms => Ok(Self::Every(ms)),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Every(ms) => format!("every {}", Period(*ms).write()),
            Self::Cron(cron) => cron.line.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Schedule {
        Schedule::read(Written::Text(text)).unwrap()
    }

    /// 2024-02-28 12:34:56 UTC, a Wednesday.
    const NOW_MS: u64 = 1_709_123_696_000;

    /// Days, hours and minutes after midnight of that day.
    fn at(days: u64, hours: u64, minutes: u64) -> Option<u64> {
        let midnight_s = NOW_MS / 1000 / DAY_S * DAY_S;
        Some((midnight_s + days * DAY_S + hours * 3600 + minutes * 60) * 1000)
    }

    #[test]
    fn cron_expressions_follow_crontab() {
        for (line, due) in [
            ("* * * * *", at(0, 12, 35)),
            ("*/15 * * * *", at(0, 12, 45)),
            ("34 12 * * *", at(1, 12, 34)),
            ("0 3 * * *", at(1, 3, 0)),
            ("30 0-12/6 * * *", at(1, 0, 30)),
            ("0 0 29 2 *", at(1, 0, 0)),
            ("0 0 1 * *", at(2, 0, 0)),
            ("5,10 8 * * 5", at(2, 8, 5)),
            ("0 0 * * 7", at(4, 0, 0)),
            ("0 0 * * 0", at(4, 0, 0)),
            ("0 0 15 * 4", at(1, 0, 0)),
            ("0 0 * 3 *", at(2, 0, 0)),
            ("0 0 31 2 *", None),
        ] {
            assert_eq!(read(line).next_after(NOW_MS), due, "{line}");
        }
    }

    #[test]
    fn intervals_are_counted_from_the_last_time() {
        assert_eq!(read("every 30s").next_after(NOW_MS), Some(NOW_MS + 30_000));
        assert_eq!(read("every 2 h").write(), "every 2h");
    }

    #[test]
    fn invalid_schedules_are_rejected() {
        for text in ["", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "x"] {
            assert!(Schedule::read(Written::Text(text)).is_err(), "{text}");
        }
        assert!(Schedule::read(Written::Text("every 1ms")).is_err());
    }
}
