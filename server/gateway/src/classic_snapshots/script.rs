//! [`Script`]: a script that calls `Outboard\snapshot()`, what its boots read of a request, and its snapshots.
//!
//! Owned by [`super::ClassicSnapshots`]. Invariants: a request goes to a snapshot only if it agrees with everything
//! that the snapshot's boot has read; a boot for other values is worth it only after many such requests.

use super::boot_frame;
use super::fact::{Fact, is_recorded};
use super::threads::SharedSnapshot;
use outboard_php_pool::renewal::seat::PoolSeat;
use outboard_ring::control::RequestRead;
use outboard_ring::request::{Field, RequestView};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Requests with equal facts until these get a snapshot of their own. A boot costs as much as some requests of
/// classic mode.
const REQUESTS_PER_BOOT: u32 = 20;
/// The facts that are counted.
const MAX_CANDIDATES: usize = 64;
/// The time without a try after a snapshot that failed, at first and at most.
const REFUSED_MS: u64 = 10_000;
const MAX_REFUSED_MS: u64 = 600_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// What any of its boots has read.
    facts: Vec<Fact>,
    pub(super) snapshots: Vec<Snapshot>,
    /// Requests by the request that their snapshot would boot with.
    candidates: Vec<(Vec<u8>, u32)>,
    pub(super) refusal: Option<Refusal>,
}

/// Why a script has no snapshot, and until when none is tried.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) why: String,
    until_ms: u64,
    after_ms: u64,
}

/// The pool of a script that has booted with one request.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) shared: Arc<SharedSnapshot>,
    /// What the boot has read; before it is complete, what it is expected to read.
    facts: Vec<Fact>,
    /// The report that `facts` are from.
    reads: Option<Rc<[RequestRead]>>,
    pub(super) seat: Rc<PoolSeat>,
}

/// Where a request goes.
#[derive(Debug)]
pub(super) enum Choice {
    /// To a worker of a snapshot.
    Snapshot(Rc<PoolSeat>),
    /// To a worker of classic mode, and a snapshot is to boot with this request.
    Boot(Vec<u8>),
    /// To a worker of classic mode.
    Classic,
}

impl Script {
    /// Where a request goes. `constants` are the configured variables.
    pub(super) fn choose(
        &mut self,
        request: &RequestView<'_>,
        constants: &BTreeMap<String, String>,
        now_ms: u64,
    ) -> Choice {
        self.update();
        for snapshot in &self.snapshots {
            if snapshot.agrees(request, constants.len()) {
                if snapshot.reads.is_none() || !snapshot.seat.is_up_to_date() {
                    return Choice::Classic;
                }
                snapshot.shared.use_at(now_ms);
                return Choice::Snapshot(snapshot.seat.clone());
            }
        }
        // Others may go on: a boot that is refused was one for other values.
        if self.refusal.as_ref().is_some_and(|refusal| now_ms < refusal.until_ms) {
            return Choice::Classic;
        }
        self.consider(request, constants)
    }

    /// Takes over what boots have reported since the last time.
    fn update(&mut self) {
        for snapshot in &mut self.snapshots {
            if snapshot.update() {
                let new = snapshot.facts.iter().filter(|fact| !self.facts.contains(fact));
                let new: Vec<_> = new.cloned().collect();
                self.facts.extend(new);
            }
        }
    }

    /// Whether a snapshot is to boot for such requests.
    fn consider(
        &mut self,
        request: &RequestView<'_>,
        constants: &BTreeMap<String, String>,
    ) -> Choice {
        let facts = self.expected();
        let boot = boot_frame::of(request, &facts, constants);
        let Ok(view) = RequestView::decode(&boot) else { return Choice::Classic };
        if !facts.iter().all(|fact| fact.agrees(&view, request)) {
            return Choice::Classic;
        }
        if self.snapshots.is_empty() || self.count(&boot) >= REQUESTS_PER_BOOT {
            return Choice::Boot(boot);
        }
        Choice::Classic
    }

    /// What a boot is expected to read: what others have, and before the first one what most scripts do.
    fn expected(&self) -> Vec<Fact> {
        if !self.facts.is_empty() {
            return self.facts.clone();
        }
        let usual = ["HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "REQUEST_SCHEME"];
        usual.iter().flat_map(|name| Fact::of(&format!("_SERVER.{name}"))).collect()
    }

    /// Counts a request; rare ones are forgotten when there are too many.
    fn count(&mut self, boot: &[u8]) -> u32 {
        if let Some((_, count)) = self.candidates.iter_mut().find(|(other, _)| other == boot) {
            *count += 1;
            return *count;
        }
        if self.candidates.len() == MAX_CANDIDATES {
            self.candidates.iter_mut().for_each(|(_, count)| *count /= 2);
            self.candidates.retain(|(_, count)| *count > 0);
        }
        if self.candidates.len() < MAX_CANDIDATES {
            self.candidates.push((boot.to_vec(), 1));
        }
        1
    }

    /// A snapshot boots with this request.
    pub(super) fn add(&mut self, shared: Arc<SharedSnapshot>, seat: Rc<PoolSeat>) {
        let facts = self.expected();
        self.candidates.retain(|(other, _)| *other != shared.boot.request);
        self.snapshots.push(Snapshot { shared, facts, reads: None, seat });
    }

    /// Whether a snapshot boots or has booted with this request.
    pub(super) fn has(&self, boot: &[u8]) -> bool {
        self.snapshots.iter().any(|snapshot| snapshot.shared.boot.request == boot)
    }

    /// Removes this snapshot.
    pub(super) fn take(&mut self, shared: &Arc<SharedSnapshot>) -> Option<Snapshot> {
        let at = self.snapshots.iter().position(|one| Arc::ptr_eq(&one.shared, shared))?;
        Some(self.snapshots.remove(at))
    }

    /// Gives up a snapshot, and tries none for a while.
    pub(super) fn refuse(&mut self, shared: &Arc<SharedSnapshot>, why: String, now_ms: u64) {
        self.take(shared);
        let before_ms = self.refusal.as_ref().map_or(REFUSED_MS / 2, |refusal| refusal.after_ms);
        let after_ms = before_ms.saturating_mul(2).min(MAX_REFUSED_MS);
        self.refusal = Some(Refusal { why, until_ms: now_ms + after_ms, after_ms });
    }

    /// The boot of a snapshot is complete. Returns what makes it useless.
    pub(super) fn booted(&mut self, shared: &Arc<SharedSnapshot>) -> Option<RequestRead> {
        self.update();
        let snapshot = self.snapshots.iter().find(|one| Arc::ptr_eq(&one.shared, shared))?;
        let reads = snapshot.reads.iter().flat_map(|reads| reads.iter());
        let useless = |read: &&RequestRead| Fact::of(&read.name).contains(&Fact::Unrepeatable);
        let useless = reads.clone().find(useless).cloned();
        if useless.is_none() {
            self.refusal = None;
        }
        useless
    }

    /// What the boots have read, the newest last.
    pub(super) fn reads(&self) -> Vec<RequestRead> {
        let mut all: Vec<RequestRead> = Vec::new();
        for read in
            self.snapshots.iter().filter_map(|one| one.reads.as_ref()).flat_map(|r| r.iter())
        {
            if !all.iter().any(|known| known.name == read.name) {
                all.push(read.clone());
            }
        }
        all
    }
}

impl Snapshot {
    /// Whether requests are handled from it.
    pub(super) fn is_used(&self) -> bool {
        let is_useless = self.facts.contains(&Fact::Unrepeatable);
        self.reads.is_some() && !is_useless && self.seat.pool().is_serving()
    }

    /// Takes over the report of the last boot; true if it is new.
    fn update(&mut self) -> bool {
        let Some(reads) = self.seat.pool().request_reads() else { return false };
        if self.reads.as_ref().is_some_and(|known| Rc::ptr_eq(known, &reads)) {
            return false;
        }
        self.facts.clear();
        for fact in reads.iter().flat_map(|read| Fact::of(&read.name)) {
            if !self.facts.contains(&fact) {
                self.facts.push(fact);
            }
        }
        self.reads = Some(reads);
        true
    }

    /// The variables of a request begin with as many configured ones, which are the same for all.
    fn agrees(&self, request: &RequestView<'_>, constants: usize) -> bool {
        // This process has encoded it.
        let Ok(boot) = RequestView::decode(&self.shared.boot.request) else { return false };
        let is_same = |field| boot.field(field) == request.field(field);
        [Field::ScriptFilename, Field::DocumentRoot, Field::DocumentUri].into_iter().all(is_same)
            && request.params().skip(constants).all(|(name, _)| is_recorded(name))
            && self.facts.iter().all(|fact| fact.agrees(&boot, request))
    }
}
