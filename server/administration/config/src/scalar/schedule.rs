//! Schedules of recurring tasks: a crontab(5) expression, by the clock of a time zone, or an interval.
//!
//! Read with the configuration, and by the clock of scheduled tasks. Invariant: an expression with fixed hours is due
//! once for each time that the clock should show, also where it is set forward or back; one whose hours begin with `*`
//! is due whenever the clock shows it.

use super::kind::{Fault, Scalar, Written};
use super::quantity::Period;
use super::time_zone::{Instants, TimeZone};
use jiff::civil::{Date, DateTime};
use jiff::{Timestamp, ToSpan};

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
    /// The field of the hours begins with `*`: real time counts where the clock is set.
    is_by_real_time: bool,
}

/// A period with every combination of date and weekday, including 29 February.
const HORIZON_DAYS: usize = 366 * 41;

/// No clock is set back by more.
const REPEATED_HOURS: usize = 3;

impl Schedule {
    /// The next time after `now_ms`, both in ms since the epoch; `None` for a date that never occurs.
    pub fn next_after(&self, now_ms: u64, zone: &TimeZone) -> Option<u64> {
        match self {
            Self::Every(ms) => Some(now_ms + ms),
            Self::Cron(cron) => {
                let now = Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?;
                u64::try_from(cron.next_after(now, zone)?.as_millisecond()).ok()
            }
        }
    }
}

impl Cron {
    fn next_after(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // A clock that is set back at midnight repeats the end of the day before.
        let first = zone.date(now).yesterday().ok()?;
        let days = first.series(1.day()).take(HORIZON_DAYS).filter(|day| self.has_day(*day));
        let mut hours = days.flat_map(|day| {
            let hours = (0..24).filter(|hour| has(self.hours, *hour));
            hours.map(move |hour| day.at(hour as i8, 0, 0, 0))
        });
        let next_in = |hour: DateTime| {
            let minute = |minute: u64| hour.checked_add((minute as i64).minutes()).ok();
            let times = |at: DateTime| self.instants(at, zone).into_iter().flatten();
            let is_over = |last: DateTime| times(last).max().is_some_and(|last| last <= now);
            if minute(59).is_none_or(is_over) {
                return None;
            }
            let minutes = (0..60).filter(|number| has(self.minutes, *number)).filter_map(minute);
            minutes.flat_map(times).filter(|at| *at > now).min()
        };
        let due = hours.find_map(next_in)?;
        // Where it is set back, a later hour comes before the repetition of this one.
        Some(hours.take(REPEATED_HOURS).filter_map(next_in).fold(due, Timestamp::min))
    }

    fn instants(&self, at: DateTime, zone: &TimeZone) -> [Option<Timestamp>; 2] {
        match zone.instants(at) {
            Instants::Twice(both) if self.is_by_real_time => both,
            Instants::Skipped(_) if self.is_by_real_time => [None, None],
            Instants::Once(at) | Instants::Twice([at, _]) | Instants::Skipped(at) => [at, None],
        }
    }

    fn has_day(&self, day: Date) -> bool {
        let by_date = has(self.days, day.day() as u64);
        let by_weekday = has(self.weekdays, day.weekday().to_sunday_zero_offset() as u64);
        has(self.months, day.month() as u64)
            && if self.either_day { by_date || by_weekday } else { by_date && by_weekday }
    }
}

fn has(set: u64, number: u64) -> bool {
    set & 1 << number != 0
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
        is_by_real_time: hour.starts_with('*'),
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
        let midnight_s = NOW_MS / 1000 / 86_400 * 86_400;
        Some((midnight_s + days * 86_400 + hours * 3600 + minutes * 60) * 1000)
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
            assert_eq!(read(line).next_after(NOW_MS, &TimeZone::UTC), due, "{line}");
        }
    }

    #[test]
    fn intervals_are_counted_from_the_last_time() {
        assert_eq!(read("every 30s").next_after(NOW_MS, &TimeZone::UTC), Some(NOW_MS + 30_000));
        assert_eq!(read("every 2 h").write(), "every 2h");
    }

    /// When a schedule is due in Berlin after an instant, so many times.
    fn due(line: &str, after: &str, count: usize) -> Vec<String> {
        let (schedule, mut at) = (read(line), after.parse::<Timestamp>().unwrap());
        let zone = TimeZone::read(Written::Text("Europe/Berlin")).unwrap();
        let next = || {
            let now_ms = u64::try_from(at.as_millisecond()).unwrap();
            let due_ms = schedule.next_after(now_ms, &zone)?;
            at = Timestamp::from_millisecond(i64::try_from(due_ms).unwrap()).unwrap();
            Some(at.strftime("%d %H:%M").to_string())
        };
        std::iter::from_fn(next).take(count).collect()
    }

    #[test]
    fn fixed_hours_are_due_once_where_the_clock_is_set() {
        // At 01:00 UTC the clock jumps from 2 to 3.
        let spring = "2026-03-28T00:00Z";
        assert_eq!(due("30 2 * * *", spring, 3), ["28 01:30", "29 01:00", "30 00:30"]);
        assert_eq!(due("*/20 2 * * *", "2026-03-29T00:00Z", 2), ["29 01:00", "30 00:00"]);
        assert_eq!(due("0 2,3 * * *", "2026-03-29T00:00Z", 2), ["29 01:00", "30 00:00"]);
        // At 01:00 UTC it is set back from 3 to 2.
        let autumn = "2026-10-24T12:00Z";
        assert_eq!(due("30 2 * * *", autumn, 2), ["25 00:30", "26 01:30"]);
        assert_eq!(due("0 3 * * *", autumn, 2), ["25 02:00", "26 02:00"]);
    }

    #[test]
    fn hours_that_begin_with_a_star_are_those_of_real_time() {
        let spring = due("30 * * * *", "2026-03-29T00:00Z", 3);
        assert_eq!(spring, ["29 00:30", "29 01:30", "29 02:30"]);
        let autumn = due("30 * * * *", "2026-10-25T00:00Z", 3);
        assert_eq!(autumn, ["25 00:30", "25 01:30", "25 02:30"]);
        assert_eq!(
            due("0 */2 * * *", "2026-10-24T23:00Z", 3),
            ["25 00:00", "25 01:00", "25 03:00"]
        );
    }

    #[test]
    fn clocks_that_are_set_within_an_hour_skip_no_other_minute() {
        // At Chatham, in 2026, from 02:45 to 03:45 on 27 September.
        let zone = TimeZone::read(Written::Text("Pacific/Chatham")).unwrap();
        let mut at_ms = "2026-09-26T13:20Z".parse::<Timestamp>().unwrap().as_millisecond() as u64;
        let mut instants = Vec::new();
        for _ in 0..5 {
            at_ms = read("0,30,50 * * * *").next_after(at_ms, &zone).unwrap();
            let at = Timestamp::from_millisecond(at_ms as i64).unwrap();
            instants.push(at.strftime("%H:%M").to_string());
        }
        assert_eq!(instants, ["13:45", "14:05", "14:15", "14:45", "15:05"]);
    }

    #[test]
    fn a_clock_that_is_set_back_over_midnight_keeps_the_order() {
        // In St. John's, in 2010, from 00:01 to 23:01 of the day before.
        let zone = TimeZone::read(Written::Text("America/St_Johns")).unwrap();
        let mut at_ms = "2010-11-07T02:29Z".parse::<Timestamp>().unwrap().as_millisecond() as u64;
        let mut instants = Vec::new();
        for _ in 0..4 {
            at_ms = read("0,30 * * * *").next_after(at_ms, &zone).unwrap();
            let at = Timestamp::from_millisecond(at_ms as i64).unwrap();
            instants.push(at.strftime("%H:%M").to_string());
        }
        assert_eq!(instants, ["02:30", "03:00", "03:30", "04:00"]);
    }

    #[test]
    fn invalid_schedules_are_rejected() {
        for text in ["", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "x"] {
            assert!(Schedule::read(Written::Text(text)).is_err(), "{text}");
        }
        assert!(Schedule::read(Written::Text("every 1ms")).is_err());
    }
}
