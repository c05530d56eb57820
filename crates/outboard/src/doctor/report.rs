//! What the PHP host wrote down (`sapi/doctor.c` tells the format), as values.
//!
//! Invariant: a line that is not understood is left out; a snapshot that was not finished as well.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

/// Something that holds state, or a part of what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// 0: the place itself; else so far below it.
    pub(super) depth: usize,
    pub(super) fingerprint: String,
    /// The value in short form.
    pub(super) value: String,
    /// The fingerprint of its declared value: empty when there is none, `?` when it is not known.
    pub(super) declared: String,
}

/// Which place: kind, name, and where it is declared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) declared_at: String,
    /// From 0, of those that look the same.
    pub(super) number: usize,
}

/// All that one request found.
pub(super) type Snapshot = BTreeMap<Place, Entry>;

/// The finished snapshots in a report, in order.
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
