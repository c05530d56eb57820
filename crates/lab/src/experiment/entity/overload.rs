//! Three times what a store can do: what it still does, how long that takes, how quickly it tells the
//! others, and how soon it is its old self.
//!
//! Twice: where the processor is short, and where the disk is and refuses writes. As many connections
//! as there are bound what is in flight, and the rest of what is due waits in the generator: its
//! latency is its own backlog, so it is given up after a moment, and times are those of service.

use std::cell::Cell;
use std::time::Duration;

use outboard_load::{Moment, Rate};

use super::put;
use crate::error::Result;
use crate::generator::{self, Task};
use crate::lab::Lab;
use crate::load::Load;
use crate::refusal::Refusal;
use crate::report::Report;
use crate::slice::{Rounds, Slice, Turns, measure};
use crate::stack::Stack;
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

/// The name of the store whose disk is short.
pub(super) const DISK: &str = "outboard, always";
/// Every write waits for the disk, which is given a batch of those that wait: so few that three times
/// what comes of that is less than the processor can refuse.
pub(super) const SETTINGS: &str = "durability = \"always\"\nqueue_length = 16\n";

/// Enough for the loop to be behind.
const MANY: usize = 512;
/// Half of what may wait, so that none is refused.
const FEW: usize = 8;
const TIMES: f64 = 3.0;
/// A due request that finds no free connection for so long is given up.
const DEADLINE: Duration = Duration::from_millis(20);
/// The fewest pairs that decide.
const PAIRS: usize = 5;

const UNLOADED: &str = "a quarter of its peak";
const PEAK: &str = "at its peak";
const ABOVE: &str = "three times its peak";

/// An experiment of one store.
struct Overload<'a> {
    stack: &'a Stack,
    /// What is short.
    what: &'static str,
    /// Connections that it has at its peak.
    at_peak: usize,
    /// Answers a second, refusals not among them, when it was last at its peak: a disk that others
    /// use as well is not as quick in one round as in the next.
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
            // Twelve of 5 s, a minute in all.
            false => (lab.effort.slices, lab.effort.slice_seconds * 5.0 / 3.0),
        };
        let names = [UNLOADED, PEAK, ABOVE];
        Turns { slices, beside: None }.among(lab, &names, |index| {
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

    fn offer(&self, rate: Rate, duration: Duration) -> Result<(Load, Vec<Moment>)> {
        let task = Task::on(self.stack, &put(), MANY);
        generator::load_by(&task, duration, rate, DEADLINE)
    }

    fn judge(&self, rounds: &Rounds) -> Vec<Verdict> {
        let bar = |what: &str| format!("PUT, {} × what the {} can do: {what}", TIMES, self.what);
        let values = |name: &str, value: fn(&Slice) -> f64| {
            rounds.of(name).map_or_else(Vec::new, |series| series.values(value))
        };
        let rate = |slice: &Slice| good(&slice.load);
        let service = |slice: &Slice| service_us(&slice.load);
        let kept = paired_ratio(&values(ABOVE, rate), &values(PEAK, rate));
        let slower = paired_ratio(&values(ABOVE, service), &values(UNLOADED, service));
        let refused = rounds.of(ABOVE).map_or(0, |series| {
            series.slices.iter().map(|slice| slice.load.refused.answers).sum::<u64>()
        });
        let told = bar("99 % of the rejected answered within 5 ms");
        let told = match refused {
            0 => Verdict::exact(&told, true, "none was rejected".into()),
            _ => {
                let with_some = |slice: &&Slice| slice.load.refused.answers > 0;
                let series = rounds.of(ABOVE).map_or(&[][..], |series| &series.slices);
                let p99_ms = |slice: &Slice| slice.load.refused.service.p99_us / 1e3;
                let p99_ms: Vec<f64> = series.iter().filter(with_some).map(p99_ms).collect();
                Verdict::at_most(&told, 5.0, &p99_ms, "ms")
            }
        };
        vec![
            Verdict::ratio_at_least(&bar("good answers ≥ 0.9 × peak"), 0.9, kept),
            Verdict::ratio(&bar("p99 of the accepted ≤ 5 × the unloaded"), 5.0, slower),
            told,
        ]
    }

    /// All of it in one piece, and then a third of what the store can do.
    fn recovery(&self, lab: &Lab, report: &mut Report, unloaded_us: f64) -> Result<()> {
        // A minute of 3 s slices.
        let above = if lab.effort.is_quick() { 2.0 } else { 20.0 * lab.effort.slice_seconds };
        let after = lab.effort.slice_seconds.max(1.5);
        let during = Duration::from_secs_f64(above);
        let peak = self.peak.get();
        let rate = Rate::Step { from: peak * TIMES, during, to: peak / TIMES };
        let mut moments = Vec::new();
        let slice = measure(lab, self.stack, None, |_| {
            let (load, series) = self.offer(rate, during + Duration::from_secs_f64(after))?;
            moments = series;
            Ok(load)
        })?;
        let noise = Refusal::of_noise(&slice).map(|refusal| refusal.to_string());
        let load = &slice.load;
        let (before, since): (Vec<Moment>, Vec<Moment>) =
            moments.into_iter().partition(|moment| moment.at_seconds < during.as_secs_f64());
        let name = format!("PUT, {TIMES} × what the {} can do for {above} s", self.what);
        let answers: u64 = before.iter().map(|moment| moment.answers).sum();
        let failed: u64 = before.iter().map(|moment| moment.failures.total()).sum();
        let part = answers.saturating_sub(failed) as f64 / above / peak;
        report.notes.push(format!(
            "{name}: good answers {part:.2} × peak; {} rejected; service of the accepted p99 {:.2} ms, \
             of the rejected p99 {:.2} ms, at most {:.2} ms; unloaded p99 {:.2} ms",
            load.refused.answers,
            load.accepted.service.p99_us / 1e3,
            load.refused.service.p99_us / 1e3,
            load.refused.service.max_us / 1e3,
            unloaded_us / 1e3,
        ));
        if !lab.effort.is_quick() {
            let bar = format!("{name}: good answers ≥ 0.9 × peak");
            let measured = format!("{part:.2} × peak in one piece");
            let verdict = Verdict::exact(&bar, part >= 0.9, measured);
            report.verdicts.push(verdict.unless(noise.as_deref()));
        }
        let bar = format!("{name}: recovered within 1 s");
        let verdict = match recovered_ms(&since, 2.0 * unloaded_us * 1e3) {
            Some(ms) => {
                let measured = format!("{ms:.0} ms until p99 of service ≤ 2 × the unloaded");
                Verdict::exact(&bar, ms <= 1e3, measured)
            }
            None => Verdict::exact(&bar, false, format!("not within {after} s")),
        };
        report.verdicts.push(verdict.unless(noise.as_deref()));
        Ok(())
    }
}

/// Good answers a second.
fn good(load: &Load) -> f64 {
    load.accepted.answers as f64 / load.seconds.max(f64::MIN_POSITIVE)
}

fn service_us(load: &Load) -> f64 {
    load.accepted.service.p99_us
}

/// When the first of three moments on end ended that were as quick as that and refused nothing.
fn recovered_ms(moments: &[Moment], p99_ns: f64) -> Option<f64> {
    let is_well = |moment: &Moment| {
        moment.answers > 0 && moment.refused == 0 && moment.service_p99_ns as f64 <= p99_ns
    };
    let first = moments.first()?.at_seconds;
    let place = moments.windows(3).position(|three| three.iter().all(is_well))?;
    Some((moments[place].at_seconds + moments[place].seconds - first) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(place: usize, refused: u64, service_p99_ns: u64) -> Moment {
        Moment {
            at_seconds: 60.0 + place as f64 / 10.0,
            seconds: 0.1,
            answers: 100,
            refused,
            service_p99_ns,
            ..Moment::default()
        }
    }

    #[test]
    fn it_has_recovered_when_three_moments_on_end_are_as_before() {
        let moments = |states: &[(u64, u64)]| -> Vec<Moment> {
            let moments = states.iter().enumerate();
            moments.map(|(place, &(refused, ns))| moment(place, refused, ns)).collect()
        };
        let recovered = |states: &[(u64, u64)]| {
            recovered_ms(&moments(states), 100.0).map(|ms| ms.round() as u64)
        };
        assert_eq!(recovered(&[(0, 90), (0, 90), (0, 90)]), Some(100));
        assert_eq!(recovered(&[(3, 90), (0, 90), (0, 101), (0, 9), (0, 9), (0, 9)]), Some(400));
        assert_eq!(recovered(&[(0, 90), (0, 90)]), None);
        assert_eq!(recovered(&[]), None);
    }
}
