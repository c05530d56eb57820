//! [`Meters`]: how often the peer does what costs this side more than itself.
//!
//! Owned by `connection`. A meter allows a burst and a rate, in the manner of a leaking bucket; useful
//! traffic relieves some of them. Invariant: below the burst a count costs an addition and a
//! comparison, without a look at the time.

use crate::error::ConnectionError;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metered {
    /// RST_STREAM by the client (CVE-2023-44487).
    Reset,
    /// RST_STREAM that the client provokes from the server (CVE-2025-8671).
    ProvokedReset,
    /// SETTINGS: each requires an acknowledgment.
    Settings,
    /// PING: each requires an acknowledgment.
    Ping,
    /// WINDOW_UPDATE; DATA that is sent relieves it.
    WindowUpdate,
    /// PRIORITY and PRIORITY_UPDATE; requests relieve it.
    Priority,
    /// DATA without data.
    EmptyData,
    /// DATA of less than [`SMALL_DATA_BYTES`].
    SmallData,
    /// Frames of unknown types, or for streams that are closed.
    Stray,
}

/// DATA frames of less, other than the last, are small.
pub(crate) const SMALL_DATA_BYTES: usize = 64;

/// What a meter allows.
struct Bound {
    burst: u32,
    per_second: u32,
    error: ConnectionError,
}

const fn bound(burst: u32, per_second: u32, error: ConnectionError) -> Bound {
    Bound { burst, per_second, error }
}

/// In the order of [`Metered`].
const BOUNDS: [Bound; 9] = [
    bound(200, 33, ConnectionError::TooManyResets),
    bound(200, 33, ConnectionError::TooManyProvokedResets),
    bound(100, 10, ConnectionError::TooManySettings),
    bound(500, 50, ConnectionError::TooManyPings),
    bound(2_000, 200, ConnectionError::TooManyWindowUpdates),
    bound(1_000, 100, ConnectionError::TooManyPriorities),
    bound(200, 20, ConnectionError::TooManyEmptyFrames),
    bound(20_000, 4_000, ConnectionError::TooManySmallFrames),
    bound(2_000, 200, ConnectionError::TooManyStrayFrames),
];

#[derive(Debug, Clone, Copy)]
struct Meter {
    count: u32,
    /// The time of the last reduction by the rate.
    reduced_ms: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Meters([Meter; BOUNDS.len()]);

impl Meters {
    pub(crate) fn new(now_ms: u64) -> Self {
        Self([Meter { count: 0, reduced_ms: now_ms }; BOUNDS.len()])
    }

    /// Counts one.
    ///
    /// # Errors
    /// There were too many.
    pub(crate) fn count(&mut self, what: Metered, now_ms: u64) -> Result<(), ConnectionError> {
        let (meter, bound) = (&mut self.0[what as usize], &BOUNDS[what as usize]);
        meter.count += 1;
        if meter.count <= bound.burst { Ok(()) } else { meter.reduce(bound, now_ms) }
    }

    /// A request with its response makes up for what goes along with one.
    pub(crate) fn relieve_by_response(&mut self) {
        self.relieve(Metered::Reset, 1);
        self.relieve(Metered::WindowUpdate, 4);
        self.relieve(Metered::Priority, 2);
        self.relieve(Metered::Stray, 1);
    }

    /// Data that was sent makes up for WINDOW_UPDATEs, which the client may send for it.
    pub(crate) fn relieve_by_data(&mut self) {
        self.relieve(Metered::WindowUpdate, 4);
    }

    /// Useful traffic makes up for `count`.
    fn relieve(&mut self, what: Metered, count: u32) {
        let meter = &mut self.0[what as usize];
        meter.count = meter.count.saturating_sub(count);
    }
}

impl Meter {
    /// Applies the rate to a count above the burst.
    #[cold]
    fn reduce(&mut self, bound: &Bound, now_ms: u64) -> Result<(), ConnectionError> {
        let elapsed_ms = now_ms.saturating_sub(self.reduced_ms);
        let allowed = elapsed_ms.saturating_mul(bound.per_second.into()) / 1000;
        if allowed == 0 {
            return Err(bound.error);
        }
        self.count = self.count.saturating_sub(u32::try_from(allowed).unwrap_or(u32::MAX));
        self.reduced_ms = now_ms;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_MS: u64 = 1_000_000;

    fn count(meters: &mut Meters, times: u32, now_ms: u64) -> Result<(), ConnectionError> {
        (0..times).try_for_each(|_| meters.count(Metered::Ping, now_ms))
    }

    #[test]
    fn a_burst_is_allowed_and_no_more() {
        let mut meters = Meters::new(START_MS);
        assert_eq!(count(&mut meters, 500, START_MS), Ok(()));
        assert_eq!(count(&mut meters, 1, START_MS), Err(ConnectionError::TooManyPings));
    }

    #[test]
    fn the_rate_is_allowed_for_any_time() {
        let mut meters = Meters::new(START_MS);
        assert_eq!(count(&mut meters, 500, START_MS), Ok(()));
        for second in 1..100 {
            assert_eq!(count(&mut meters, 50, START_MS + second * 1000), Ok(()), "{second}");
        }
        assert_eq!(count(&mut meters, 60, START_MS + 99_001), Err(ConnectionError::TooManyPings));
    }

    #[test]
    fn useful_traffic_makes_up_for_frames() {
        let mut meters = Meters::new(START_MS);
        for _ in 0..10_000 {
            assert_eq!(count(&mut meters, 3, START_MS), Ok(()));
            meters.relieve(Metered::Ping, 3);
        }
    }

    #[test]
    fn each_meter_has_a_bound_of_its_own() {
        for (at, bound) in BOUNDS.iter().enumerate() {
            assert!(BOUNDS[..at].iter().all(|other| other.error != bound.error));
        }
        assert_eq!(Metered::Stray as usize, BOUNDS.len() - 1);
    }
}
