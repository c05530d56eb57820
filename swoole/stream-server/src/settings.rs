//! [`Settings`]: what a program sets for its connections, as a worker sends it when it joins.
//!
//! Invariant: a worker may send anything; each number is brought within bounds here.

use crate::framing::{Framing, LengthField, LengthKind};
use serde::Deserialize;

/// The largest message of any port.
const PACKAGE_MAX_BYTES: u64 = 64 << 20;
/// The most output that waits for one client.
const OUTPUT_MAX_BYTES: u64 = 64 << 20;
/// The most ports and workers of a program.
const PORTS_MAX: usize = 256;
const WORKERS_MAX: u32 = 4096;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Whether the worker performs tasks, and takes no connections.
    pub(crate) is_task_worker: bool,
    pub(crate) dispatch: Dispatch,
    /// Whether the program learns of opened and closed connections whose messages go to any worker.
    pub(crate) has_unsafe_events: bool,
    /// The most connections; 0: no limit of its own.
    pub(crate) max_connections: u64,
    /// The most items that one worker handles at a time.
    pub(crate) concurrency: usize,
    pub(crate) ports: Vec<PortSettings>,
}

/// Which worker an item is for (`dispatch_mode`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Dispatch {
    /// One after the other.
    RoundRobin,
    /// By the number of the connection.
    #[default]
    Session,
    /// That with the fewest items.
    LeastLoaded,
    /// By the client's address.
    Address,
    /// By the user of the connection.
    User,
    /// The least loaded one when the connection is opened.
    LeastLoadedAtOpen,
}

impl Dispatch {
    /// Whether all items of a connection go to one worker.
    pub(crate) fn is_bound(self) -> bool {
        !matches!(self, Self::RoundRobin | Self::LeastLoaded)
    }
}

/// The settings of a port.
#[derive(Debug, Clone)]
pub(crate) struct PortSettings {
    pub(crate) framing: Framing,
    pub(crate) package_bytes: usize,
    /// How long a connection may be silent; 0: for ever.
    pub(crate) idle_ms: u64,
    /// The most output that waits for a client.
    pub(crate) output_bytes: usize,
    /// From this much output on, workers are to wait.
    pub(crate) high_bytes: usize,
    /// Until no more than this is left.
    pub(crate) low_bytes: usize,
    /// Whether a connection is read only once it was confirmed.
    pub(crate) waits_for_confirmation: bool,
    /// Whether small pieces are collected by the kernel (Nagle's algorithm).
    pub(crate) has_delay: bool,
}

#[derive(Deserialize)]
#[serde(default)]
struct Raw {
    is_task_worker: bool,
    dispatch_mode: i64,
    unsafe_events: bool,
    max_connections: i64,
    concurrency: i64,
    ports: Vec<RawPort>,
}

#[derive(Deserialize)]
#[serde(default)]
struct RawPort {
    framing: String,
    /// In hexadecimal.
    mark: String,
    length_type: String,
    length_offset: i64,
    body_offset: i64,
    package_bytes: i64,
    idle_ms: i64,
    output_bytes: i64,
    high_bytes: i64,
    low_bytes: i64,
    waits_for_confirmation: bool,
    has_delay: bool,
}

impl Default for Raw {
    fn default() -> Self {
        Self {
            is_task_worker: false,
            dispatch_mode: 2,
            unsafe_events: false,
            max_connections: 0,
            concurrency: 1000,
            ports: Vec::new(),
        }
    }
}

impl Default for RawPort {
    fn default() -> Self {
        Self {
            framing: String::new(),
            mark: String::new(),
            length_type: "N".to_owned(),
            length_offset: 0,
            body_offset: 0,
            package_bytes: 2 << 20,
            idle_ms: 0,
            output_bytes: 8 << 20,
            high_bytes: 0,
            low_bytes: 0,
            waits_for_confirmation: false,
            has_delay: false,
        }
    }
}

impl Default for PortSettings {
    fn default() -> Self {
        Self::of(RawPort::default())
    }
}

/// The number of workers that may join.
pub(crate) fn is_worker_number(number: u64) -> bool {
    number < u64::from(WORKERS_MAX)
}

impl Settings {
    /// Reads the JSON that a worker has sent; what cannot be read has its default.
    pub(crate) fn read(json: &[u8]) -> Self {
        let raw: Raw = serde_json::from_slice(json).unwrap_or_default();
        Self {
            is_task_worker: raw.is_task_worker,
            dispatch: match raw.dispatch_mode {
                1 => Dispatch::RoundRobin,
                3 | 9 => Dispatch::LeastLoaded,
                4 => Dispatch::Address,
                5 => Dispatch::User,
                7 | 8 => Dispatch::LeastLoadedAtOpen,
                _ => Dispatch::Session,
            },
            has_unsafe_events: raw.unsafe_events,
            max_connections: u64::try_from(raw.max_connections).unwrap_or(0),
            concurrency: within(raw.concurrency, 1, 1000),
            ports: raw.ports.into_iter().take(PORTS_MAX).map(PortSettings::of).collect(),
        }
    }

    /// The settings of a port.
    pub(crate) fn port(&self, index: u16) -> PortSettings {
        self.ports.get(usize::from(index)).cloned().unwrap_or_default()
    }
}

impl PortSettings {
    fn of(raw: RawPort) -> Self {
        let output_bytes = within(raw.output_bytes, 64 << 10, OUTPUT_MAX_BYTES);
        let high_bytes = match raw.high_bytes {
            ..=0 => output_bytes / 8 * 7,
            high_bytes => within(high_bytes, 1, output_bytes as u64),
        };
        Self {
            framing: framing(&raw),
            package_bytes: within(raw.package_bytes, 1, PACKAGE_MAX_BYTES),
            idle_ms: u64::try_from(raw.idle_ms).unwrap_or(0),
            output_bytes,
            high_bytes,
            low_bytes: within(raw.low_bytes, 0, high_bytes as u64 - 1),
            waits_for_confirmation: raw.waits_for_confirmation,
            has_delay: raw.has_delay,
        }
    }
}

fn within(number: i64, least: u64, most: u64) -> usize {
    let bounded = u64::try_from(number).unwrap_or(0).clamp(least, most);
    usize::try_from(bounded).expect("the bounds are small")
}

fn framing(raw: &RawPort) -> Framing {
    let mark = || bytes(&raw.mark).filter(|mark| !mark.is_empty());
    match raw.framing.as_str() {
        "ends" => mark().map_or(Framing::None, Framing::Ends),
        "splits" => mark().map_or(Framing::None, Framing::Splits),
        "measured" => Framing::Measured,
        "length" => {
            let letter = raw.length_type.chars().next().and_then(LengthKind::of);
            letter.map_or(Framing::None, |kind| {
                Framing::Length(LengthField {
                    kind,
                    offset: within(raw.length_offset, 0, PACKAGE_MAX_BYTES),
                    body_offset: within(raw.body_offset, 0, PACKAGE_MAX_BYTES),
                })
            })
        }
        _ => Framing::None,
    }
}

/// Bytes in hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_be_are_brought_within_bounds() {
        let json = br#"{"concurrency": -5, "dispatch_mode": 99, "ports": [
            {"package_bytes": -1, "output_bytes": 0, "low_bytes": 9999999999, "high_bytes": 7},
            {"framing": "splits", "mark": "0d0a"}, {"framing": "ends", "mark": "zz"},
            {"framing": "length", "length_type": "?"}]}"#;
        let settings = Settings::read(json);
        assert_eq!((settings.concurrency, settings.dispatch), (1, Dispatch::Session));
        let first = settings.port(0);
        assert_eq!((first.package_bytes, first.output_bytes), (1, 64 << 10));
        assert_eq!((first.high_bytes, first.low_bytes), (7, 6));
        assert_eq!(settings.port(1).framing, Framing::Splits(b"\r\n".to_vec()));
        assert_eq!(settings.port(2).framing, Framing::None);
        assert_eq!(settings.port(3).framing, Framing::None);
        assert_eq!(settings.port(4).package_bytes, 2 << 20, "a port that it does not have");
        for json in [&b"[]"[..], b"", b"{\"ports\": 5}", b"\xff"] {
            assert_eq!(Settings::read(json).concurrency, 1000);
        }
    }
}
