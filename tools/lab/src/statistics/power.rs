//! What a number of pairs can show: the smallest effect, and the pairs that an effect needs.
//!
//! Computed from the width of the measured interval, which includes the machine's noise, without a
//! model of the noise.

use super::Estimate;

/// The probability of detecting the smallest detectable effect.
const POWER: f64 = 0.8;

/// The smallest difference (of logarithms) that a comparison with an interval like this one
/// detects four times out of five at the level `alpha`, two-sided.
pub fn smallest_effect(interval: &Estimate, alpha: f64) -> f64 {
    standard_error(interval) * (quantile(1.0 - alpha / 2.0) + quantile(POWER))
}

/// The pairs needed to detect an effect of that size, after `pairs` gave this interval. `None` for
/// unrealistically many.
pub fn pairs_for(effect: f64, interval: &Estimate, pairs: usize, alpha: f64) -> Option<usize> {
    const MOST: f64 = 1_000.0;
    let times = (smallest_effect(interval, alpha) / effect.abs()).powi(2);
    let needed = (pairs as f64 * times).ceil();
    (needed <= MOST).then_some(needed as usize)
}

/// The standard deviation of the estimate itself.
fn standard_error(interval: &Estimate) -> f64 {
    let deviations = quantile(f64::midpoint(1.0, interval.confidence));
    if deviations > 0.0 { (interval.high - interval.low) / 2.0 / deviations } else { f64::INFINITY }
}

/// The quantile of the standard normal distribution, by bisection.
fn quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if normal(middle) < probability { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The standard normal distribution: its density integrated from 0 by Simpson's rule, to more
/// places than are needed.
fn normal(x: f64) -> f64 {
    const STEPS: usize = 200;
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let step = x / STEPS as f64;
    let weighted = (0..=STEPS).map(|at| {
        let weight = match at {
            0 | STEPS => 1.0,
            _ if at % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * density(at as f64 * step)
    });
    0.5 + weighted.sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(half: f64) -> Estimate {
        Estimate { low: -half, middle: 0.0, high: half, confidence: 0.95 }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, expected) in [(0.5, 0.0), (0.8, 0.8416), (0.975, 1.9600), (0.995, 2.5758)]
        {
            assert!((quantile(probability) - expected).abs() < 1e-4, "{probability}");
        }
    }

    #[test]
    fn half_the_width_shows_half_the_effect() {
        let ratio = smallest_effect(&interval(0.1), 0.05) / smallest_effect(&interval(0.05), 0.05);
        assert!((ratio - 2.0).abs() < 1e-9);
        // (1.96 + 0.84) / 1.96 of the half width.
        assert!((smallest_effect(&interval(0.0196), 0.05) - 0.0280).abs() < 1e-4);
    }

    #[test]
    fn half_the_effect_takes_four_times_the_pairs() {
        let effect = smallest_effect(&interval(0.1), 0.05);
        assert_eq!(pairs_for(effect * 0.999, &interval(0.1), 10, 0.05), Some(11));
        assert_eq!(pairs_for(-effect / 2.0 * 1.001, &interval(0.1), 10, 0.05), Some(40));
        assert_eq!(pairs_for(1e-9, &interval(0.1), 10, 0.05), None);
    }
}
