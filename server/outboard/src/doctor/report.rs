//! The report of the PHP host (format: `sapi/doctor/doctor.c`), as values.
//!
//! Invariant: invalid lines and incomplete snapshots are ignored.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

/// A place that holds state, or a part of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// 0: the place itself; otherwise the depth below it.
    pub(super) depth: usize,
    pub(super) fingerprint: String,
    /// The value in short form.
    pub(super) value: String,
    /// The fingerprint of its declared value: empty if there is none, `?` if it is unknown.
    pub(super) declared: String,
}

/// Identity of a place: kind, name, and declaration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) declared_at: String,
    /// Index among places with the same kind and name, from 0.
    pub(super) number: usize,
}

/// The state at one request.
pub(super) type Snapshot = BTreeMap<Place, Entry>;

/// The complete snapshots in a report, in order.
pub(super) fn snapshots(report: &str) -> Vec<Snapshot> {
    let mut finished = Vec::new();
    let mut present = Snapshot::new();
    for line in report.lines() {
        match line {
            "begin" => present = Snapshot::new(),
            "end" => finished.push(std::mem::take(&mut present)),
            line => add(&mut present, line),
        }
    }
    finished
}

fn add(snapshot: &mut Snapshot, line: &str) {
    let fields: Vec<&str> = line.split('\t').collect();
    let [depth, kind, name, declared_at, fingerprint, value, declared] = fields[..] else { return };
    let Ok(depth) = depth.parse() else { return };
    let entry = Entry {
        depth,
        fingerprint: fingerprint.to_owned(),
        value: value.to_owned(),
        declared: declared.to_owned(),
    };
    let mut place = Place {
        kind: kind.to_owned(),
        name: name.to_owned(),
        declared_at: declared_at.to_owned(),
        number: 0,
    };
    loop {
        match snapshot.entry(place) {
            Slot::Vacant(slot) => {
                slot.insert(entry);
                return;
            }
            Slot::Occupied(slot) => {
                place = slot.key().clone();
                place.number += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
