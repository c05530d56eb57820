//! Three times the capacity of a store: its remaining throughput, latencies, the speed of refusals,
//! and how soon it recovers.
//!
//! Twice: with the processor as the bottleneck, and with a disk that refuses writes. The
//! connections bound the requests in flight, and other due requests wait in the generator. Their
//! latency is the generator's backlog, so they are dropped after a moment, and times are service
//! times.

use std::cell::Cell;
use std::time::Duration;

use outboard_load::{Interval, Rate};

use super::store::put;
use crate::error::Result;
use crate::generator::{self, Task};
use crate::lab::Lab;
use crate::load::Load;
use crate::refusal::Refusal;
use crate::report::Report;
use crate::series::Slice;
use crate::slice::{Rounds, Turns, measure};
use crate::stack::Stack;
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

/// The name of the store whose disk is the bottleneck.
pub(super) const DISK: &str = "outboard, always";
/// Every write waits for the disk, with a batch so small that three times its throughput is less
/// than the processor can refuse.
pub(super) const SETTINGS: &str = "durability = \"always\"\nqueue_length = 16\n";

/// Enough to keep the store behind in a closed loop.
const MANY: usize = 512;
/// Half of the queue, so that none is refused.
const FEW: usize = 8;
const TIMES: f64 = 3.0;
/// A due request without a free connection is dropped after this time.
const DEADLINE: Duration = Duration::from_millis(20);
/// The fewest pairs that decide.
const PAIRS: usize = 5;

const UNLOADED: &str = "a quarter of its peak";
const PEAK: &str = "at its peak";
const ABOVE: &str = "three times its peak";

/// An experiment of one store.
struct Overload<'a> {
    stack: &'a Stack,
    /// The bottleneck.
    what: &'static str,
    /// Connections at its peak.
    at_peak: usize,
    /// Good responses per second in its last peak slice: a shared disk is not equally fast in every
    /// round.
    peak: Cell<f64>,
}

pub(super) fn processor(lab: &Lab, report: &mut Report, stack: &Stack) -> Result<()> {
    run(lab, report, stack, "processor", MANY)
}

pub(super) fn disk(lab: &Lab, report: &mut Report, stack: &Stack) -> Result<()> {
    run(lab, report, stack, "disk", FEW)
}

fn run(
    lab: &Lab,
    report: &mut Report,
    stack: &Stack,
    what: &'static str,
    at_peak: usize,
) -> Result<()> {
    let warm = generator::load(stack, &put(), at_peak, lab.effort.slice_seconds)?;
    let overload = Overload { stack, what, at_peak, peak: Cell::new(good(&warm)) };
    let rounds = overload.rounds(lab)?;
    report.add_rows(&format!("PUT, the {what} is short"), &rounds);
    report.verdicts.extend(overload.judge(&rounds));
    let middle = |name: &str, value: fn(&Load) -> f64| {
        rounds.of(name).map_or(f64::NAN, |series| series.median(|slice| value(&slice.load)))
    };
    overload.peak.set(middle(PEAK, good));
    overload.recovery(lab, report, middle(UNLOADED, service_us))
}

impl Overload<'_> {
    fn rounds(&self, lab: &Lab) -> Result<Rounds> {
        let (slices, seconds) = match lab.effort.is_quick() {
            true => (PAIRS, lab.effort.short_slice_seconds()),
            // Twelve slices of 5 s, a minute in all.
            false => (lab.effort.slices, lab.effort.slice_seconds * 5.0 / 3.0),
        };
        let names = [UNLOADED, PEAK, ABOVE];
        Turns { slices, shared: None }.among(lab, &names, |index| {
            measure(lab, self.stack, None, |_| match names[index] {
                UNLOADED => self.at(self.peak.get() / 4.0, seconds),
                PEAK => {
                    let load = generator::load(self.stack, &put(), self.at_peak, seconds)?;
                    self.peak.set(good(&load));
                    Ok(load)
                }
                _ => self.at(self.peak.get() * TIMES, seconds),
            })
        })
    }

    fn at(&self, rate: f64, seconds: f64) -> Result<Load> {
        let duration = Duration::from_secs_f64(seconds);
        Ok(self.offer(Rate::Fixed(rate), duration)?.0)
    }

    fn offer(&self, rate: Rate, duration: Duration) -> Result<(Load, Vec<Interval>)> {
        let task = Task::on(self.stack, &put(), MANY);
        generator::load_by(&task, duration, rate, DEADLINE)
    }

    fn judge(&self, rounds: &Rounds) -> Vec<Verdict> {
        let target =
            |what: &str| format!("PUT, {} × the capacity of the {}: {what}", TIMES, self.what);
        let values = |name: &str, value: fn(&Slice) -> f64| {
            rounds.of(name).map_or_else(Vec::new, |series| series.values(value))
        };
        let rate = |slice: &Slice| good(&slice.load);
        let service = |slice: &Slice| service_us(&slice.load);
        let throughput = paired_ratio(&values(ABOVE, rate), &values(PEAK, rate));
        let slower = paired_ratio(&values(ABOVE, service), &values(UNLOADED, service));
        let refused = rounds.of(ABOVE).map_or(0, |series| {
            series.slices.iter().map(|slice| slice.load.refused.responses).sum::<u64>()
        });
        let refusals = target("99 % of the rejected answered within 5 ms");
        let refusals = match refused {
            0 => Verdict::exact(&refusals, true, "none was rejected".into()),
            _ => {
                let with_some = |slice: &&Slice| slice.load.refused.responses > 0;
                let series = rounds.of(ABOVE).map_or(&[][..], |series| &series.slices);
                let p99_ms = |slice: &Slice| slice.load.refused.service.p99_us / 1e3;
                let p99_ms: Vec<f64> = series.iter().filter(with_some).map(p99_ms).collect();
                Verdict::at_most(&refusals, 5.0, &p99_ms, "ms")
            }
        };
        vec![
            Verdict::ratio_at_least(&target("good responses ≥ 0.9 × peak"), 0.9, throughput),
            Verdict::ratio(&target("p99 of the accepted ≤ 5 × the unloaded"), 5.0, slower),
            refusals,
        ]
    }

    /// The overload in one piece, followed by a third of the capacity.
    fn recovery(&self, lab: &Lab, report: &mut Report, unloaded_us: f64) -> Result<()> {
        // A minute, for slices of 3 s.
        let above = if lab.effort.is_quick() { 2.0 } else { 20.0 * lab.effort.slice_seconds };
        let after = lab.effort.slice_seconds.max(1.5);
        let during = Duration::from_secs_f64(above);
        let peak = self.peak.get();
        let rate = Rate::Step { from: peak * TIMES, during, to: peak / TIMES };
        let mut intervals = Vec::new();
        let slice = measure(lab, self.stack, None, |_| {
            let (load, series) = self.offer(rate, during + Duration::from_secs_f64(after))?;
            intervals = series;
            Ok(load)
        })?;
        let noise = Refusal::of_noise(&slice).map(|refusal| refusal.to_string());
        let load = &slice.load;
        let (before, since): (Vec<Interval>, Vec<Interval>) =
            intervals.into_iter().partition(|interval| interval.at_seconds < during.as_secs_f64());
        let name = format!("PUT, {TIMES} × the capacity of the {} for {above} s", self.what);
        let responses: u64 = before.iter().map(|interval| interval.responses).sum();
        let failed: u64 = before.iter().map(|interval| interval.failures.total()).sum();
        let part = responses.saturating_sub(failed) as f64 / above / peak;
        report.notes.push(format!(
            "{name}: good responses {part:.2} × peak; {} rejected; service of the accepted p99 {:.2} ms, \
             of the rejected p99 {:.2} ms, at most {:.2} ms; unloaded p99 {:.2} ms",
            load.refused.responses,
            load.accepted.service.p99_us / 1e3,
            load.refused.service.p99_us / 1e3,
            load.refused.service.max_us / 1e3,
            unloaded_us / 1e3,
        ));
        if !lab.effort.is_quick() {
            let target = format!("{name}: good responses ≥ 0.9 × peak");
            let measured = format!("{part:.2} × peak in one piece");
            let verdict = Verdict::exact(&target, part >= 0.9, measured);
            report.verdicts.push(verdict.unless(noise.as_deref()));
        }
        let target = format!("{name}: recovered within 1 s");
        let verdict = match recovered_ms(&since, 2.0 * unloaded_us * 1e3) {
            Some(ms) => {
                let measured = format!("{ms:.0} ms until p99 of service ≤ 2 × the unloaded");
                Verdict::exact(&target, ms <= 1e3, measured)
            }
            None => Verdict::exact(&target, false, format!("not within {after} s")),
        };
        report.verdicts.push(verdict.unless(noise.as_deref()));
        Ok(())
    }
}

/// Good responses per second.
fn good(load: &Load) -> f64 {
    load.accepted.responses as f64 / load.seconds.max(f64::MIN_POSITIVE)
}

fn service_us(load: &Load) -> f64 {
    load.accepted.service.p99_us
}

/// The end of the first three consecutive intervals that were fast enough and refused nothing.
fn recovered_ms(intervals: &[Interval], p99_ns: f64) -> Option<f64> {
    let is_well = |interval: &Interval| {
        interval.responses > 0 && interval.refused == 0 && interval.service_p99_ns as f64 <= p99_ns
    };
    let first = intervals.first()?.at_seconds;
    let place = intervals.windows(3).position(|three| three.iter().all(is_well))?;
    Some((intervals[place].at_seconds + intervals[place].seconds - first) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(place: usize, refused: u64, service_p99_ns: u64) -> Interval {
        Interval {
            at_seconds: 60.0 + place as f64 / 10.0,
            seconds: 0.1,
            responses: 100,
            refused,
            service_p99_ns,
            ..Interval::default()
        }
    }

    #[test]
    fn recovery_is_three_good_intervals_in_a_row() {
        let intervals = |states: &[(u64, u64)]| -> Vec<Interval> {
            let intervals = states.iter().enumerate();
            intervals.map(|(place, &(refused, ns))| interval(place, refused, ns)).collect()
        };
        let recovered = |states: &[(u64, u64)]| {
            recovered_ms(&intervals(states), 100.0).map(|ms| ms.round() as u64)
        };
        assert_eq!(recovered(&[(0, 90), (0, 90), (0, 90)]), Some(100));
        assert_eq!(recovered(&[(3, 90), (0, 90), (0, 101), (0, 9), (0, 9), (0, 9)]), Some(400));
        assert_eq!(recovered(&[(0, 90), (0, 90)]), None);
        assert_eq!(recovered(&[]), None);
    }
}
