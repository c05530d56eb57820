//! [`Search`]: the highest rate that keeps a promise, by halving what lies between.
//!
//! Decides which rate is tried next and nothing else; who calls it runs the trial. One bad trial
//! may be the noise of the machine, so a rate counts as broken after two.

/// Where a search stands.
#[derive(Debug, Clone)]
pub struct Search {
    kept: f64,
    broken: f64,
    /// The rate that failed once.
    suspect: Option<f64>,
    precision: f64,
}

impl Search {
    /// Searches below `ceiling` requests a second, until it is known to `precision` of itself.
    pub fn below(ceiling: f64, precision: f64) -> Self {
        Self { kept: 0.0, broken: ceiling, suspect: None, precision }
    }

    /// The next rate to try; `None` when the search is over.
    pub fn next_rate(&self) -> Option<f64> {
        if let Some(rate) = self.suspect {
            return Some(rate);
        }
        let is_over = self.broken - self.kept <= self.broken * self.precision || self.broken < 1.0;
        (!is_over).then_some((self.kept + self.broken) / 2.0)
    }

    /// The rate was tried.
    pub fn note(&mut self, rate: f64, is_kept: bool) {
        match (is_kept, self.suspect.take()) {
            (true, _) => self.kept = self.kept.max(rate),
            (false, Some(_)) => self.broken = self.broken.min(rate),
            (false, None) => self.suspect = Some(rate),
        }
    }

    /// The highest rate that kept the promise, 0 if none did, and the lowest that did not or was
    /// out of reach.
    pub fn bounds(&self) -> (f64, f64) {
        (self.kept, self.broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches where every rate up to `limit` keeps the promise; gives the result and the trials.
    fn search(limit: f64, noisy: Option<usize>) -> (f64, usize) {
        let mut search = Search::below(10_000.0, 0.02);
        let mut trials = 0;
        while let Some(rate) = search.next_rate() {
            trials += 1;
            search.note(rate, rate <= limit && noisy != Some(trials));
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
    fn nothing_is_found_where_nothing_is_kept() {
        assert_eq!(search(0.0, None).0, 0.0);
    }
}
