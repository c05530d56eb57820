//! [`Search`]: bisects for the highest rate that meets a threshold.
//!
//! It decides only which rate is tried next; the caller runs the trial. One bad trial may be noise
//! of the machine, so a rate fails after two.

/// The state of a search.
///
/// # Examples
///
/// ```
/// use outboard_load::Search;
///
/// // A server that meets the threshold up to 700 requests per second.
/// let mut search = Search::below(1_000.0, 0.05);
/// while let Some(rate) = search.next_rate() {
///     search.record(rate, rate <= 700.0);
/// }
/// let (met, missed) = search.bounds();
/// assert!(met <= 700.0 && 700.0 <= missed && missed - met < 50.0);
/// ```
#[derive(Debug, Clone)]
pub struct Search {
    met: f64,
    missed: f64,
    /// The rate that failed once.
    suspect: Option<f64>,
    precision: f64,
}

impl Search {
    /// Searches below `ceiling` requests per second until the relative precision is reached.
    pub fn below(ceiling: f64, precision: f64) -> Self {
        Self { met: 0.0, missed: ceiling, suspect: None, precision }
    }

    /// The next rate to try; `None` when the search is over.
    pub fn next_rate(&self) -> Option<f64> {
        if let Some(rate) = self.suspect {
            return Some(rate);
        }
        let is_over = self.missed - self.met <= self.missed * self.precision || self.missed < 1.0;
        (!is_over).then_some((self.met + self.missed) / 2.0)
    }

    /// Reports the outcome of a trial.
    pub fn record(&mut self, rate: f64, is_met: bool) {
        match (is_met, self.suspect.take()) {
            (true, _) => self.met = self.met.max(rate),
            (false, Some(_)) => self.missed = self.missed.min(rate),
            (false, None) => self.suspect = Some(rate),
        }
    }

    /// The highest rate that met the threshold, 0 if none did, and the lowest that failed or was
    /// not reached.
    pub fn bounds(&self) -> (f64, f64) {
        (self.met, self.missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches where every rate up to `limit` meets the threshold; returns the result and the
    /// trials.
    fn search(limit: f64, noisy: Option<usize>) -> (f64, usize) {
        let mut search = Search::below(10_000.0, 0.02);
        let mut trials = 0;
        while let Some(rate) = search.next_rate() {
            trials += 1;
            search.record(rate, rate <= limit && noisy != Some(trials));
        }
        (search.bounds().0, trials)
    }

    #[test]
    fn the_limit_is_found_from_below() {
        for limit in [30.0, 1234.0, 5000.0, 9999.0] {
            let (found, trials) = search(limit, None);
            assert!(found <= limit && found >= limit * 0.97, "{found} of {limit}");
            assert!(trials < 30, "{trials}");
        }
    }

    #[test]
    fn one_bad_trial_changes_nothing() {
        assert_eq!(search(5000.0, Some(1)).0, search(5000.0, None).0);
    }

    #[test]
    fn an_unreachable_threshold_is_not_found() {
        assert_eq!(search(0.0, None).0, 0.0);
    }
}
