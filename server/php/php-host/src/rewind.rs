//! [`Rewind`]: puts a worker back to what it was when its script first called for a request.
//!
//! Owned by the running script, called on a stack of its own (`sapi/rewind/rewind.c`), so that the script's stack can
//! be put back, too. The zygote takes the snapshot before it forks; a worker puts itself back once when it has
//! been forked, and after each request. What a request has written is copied back from the snapshot, what it has
//! opened is closed, what it has mapped is unmapped. Between two requests a worker may add to its snapshot
//! ([`WarmCaches`]). Invariants: after a rewind every byte of PHP's memory is the snapshot's, except for the kept
//! variables; what cannot be put back ends the worker after its response.
//!
//! Design and measurements: docs/decisions/0034-rewind.md.

mod attributes;
mod descriptors;
mod irreversible;
mod kept_variables;
mod mappings;
mod process_state;
mod snapshot;
mod warm_caches;
mod writes;

pub(crate) use descriptors::open_descriptors;
pub(crate) use irreversible::Irreversible;
pub(crate) use warm_caches::Entry as CacheEntry;

use kept_variables::KeptVariables;
use outboard_ring::control::{self, WritesBy};
use process_state::ProcessState;
use snapshot::Snapshot;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::RawFd;
use warm_caches::WarmCaches;
use writes::Writes;

unsafe extern "C" {
    // sapi/process/changes.c
    fn outboard_process_hides_children() -> bool;
}

/// After this number of requests the pages that they have written are protected again. A page that is
/// reported in vain costs 0.1 µs, and a fault 0.7 µs: so one that every tenth request writes may stay
/// reported.
const REQUESTS_PER_PROTECTION: u32 = 128;

/// With more pages of its own, a worker adds none to its snapshot.
const OWN_BYTES_MAX: usize = 8 << 20;

/// The same where the kernel does not tell them from those that a request writes, so that all are copied back.
const OWN_BYTES_MAX_COPIED: usize = 1 << 20;

/// The variable that has each rewind compared with the snapshot; a debug build compares each.
const VERIFY: &str = "OUTBOARD_VERIFY_REWIND";
/// The variable that has the host do without rewinds, as where the kernel permits none: for tests of that.
const FORBID: &str = "OUTBOARD_FORBID_REWIND";

/// See the module.
#[derive(Debug)]
pub(crate) struct Rewind {
    snapshot: Snapshot,
    span: Range<usize>,
    /// The descriptors that the boot has opened, and the standard ones.
    descriptors: Vec<RawFd>,
    writes_by: WritesBy,
    /// The id of the zygote's thread.
    zygote: i32,
    /// Whether programs that a request has started may go on.
    leaves_programs: bool,
    /// Once the worker is ready for its first request.
    worker: Option<Worker>,
}

#[derive(Debug)]
struct Worker {
    writes: Writes,
    /// How often this process and its children had faulted when the known writes were complete. Each first write to
    /// a page is a fault, of whichever code, so that an equal number means that there is nothing new to find.
    faults: Option<i64>,
    process: ProcessState,
    kept: KeptVariables,
    caches: WarmCaches,
    /// Whether what is written now is to be added to the snapshot.
    is_adding: bool,
    since_protection: u32,
    is_verifying: bool,
}

impl Rewind {
    /// Takes the snapshot, in the zygote. `stack` is the part of the first thread's stack that is in use, and
    /// `own` are the descriptors of the host, which are not the script's.
    ///
    /// # Safety
    /// The process has one thread, which runs on a stack in Rust's memory.
    pub(crate) unsafe fn take(
        stack: Range<usize>,
        own: &[RawFd],
        leaves_programs: bool,
    ) -> io::Result<Self> {
        let descriptors = open_descriptors()?;
        let is_script_s = |number: &RawFd| !own.contains(number) || *number <= libc::STDERR_FILENO;
        let writes_by = probe()?;
        // SAFETY: the caller's contract.
        let snapshot = unsafe { Snapshot::take(stack) }?;
        Ok(Self {
            span: snapshot.span(),
            snapshot,
            descriptors: descriptors.into_iter().filter(is_script_s).collect(),
            writes_by,
            zygote: thread_id(),
            leaves_programs,
            worker: None,
        })
    }

    /// Whether this process is a worker that was put back before.
    pub(crate) fn is_ready(&self) -> bool {
        self.worker.is_some()
    }

    /// How workers will be rewound.
    pub(crate) fn describe(&self) -> control::Rewind {
        control::Rewind { writes_by: self.writes_by, snapshot_bytes: self.snapshot.bytes() as u64 }
    }

    /// In a worker that was just forked: puts it back for the first time.
    ///
    /// # Safety
    /// As [`Rewind::take`].
    pub(crate) unsafe fn begin(&mut self) -> io::Result<()> {
        let kept = KeptVariables::find(&self.snapshot, self.zygote);
        let writes = Writes::watch(self.snapshot.regions(), &self.span)?;
        // What was written since the snapshot, here or in the zygote: few pages, most of which the requests will
        // write to as well. To drop all pages takes 0.5 ms. Watching writes to none, unless it fails, and then
        // the page map has them after each request.
        // SAFETY: the caller's contract; nothing of Rust is in that memory.
        unsafe {
            self.snapshot.restore(writes.found());
            self.snapshot.restore_stack();
        }
        let process = ProcessState::record(&self.descriptors, self.leaves_programs)?;
        let is_verifying = cfg!(debug_assertions) || std::env::var_os(VERIFY).is_some();
        kept.put_back();
        self.worker = Some(Worker {
            writes,
            faults: None,
            process,
            kept,
            caches: WarmCaches::default(),
            is_adding: false,
            since_protection: 0,
            is_verifying,
        });
        Ok(())
    }

    /// Whether it is of use to note what requests fill the caches of the process with.
    pub(crate) fn is_learning(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.caches.is_learning())
    }

    /// The present request has used this, which the cache did not have.
    pub(crate) fn note_use(&mut self, entry: CacheEntry) {
        if let Some(worker) = &mut self.worker {
            worker.caches.note(entry);
        }
    }

    /// What is to be added to its cache between two requests, and with it to the snapshot.
    pub(crate) fn next_due(&mut self) -> Option<&CacheEntry> {
        let worker = self.worker.as_mut()?;
        let entry = worker.caches.next()?;
        worker.is_adding = true;
        Some(entry)
    }

    /// Whether the process is to go on from what it is now, and not from the snapshot.
    pub(crate) fn is_adding(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.is_adding)
    }

    /// Adds what was written since the last rewind to the snapshot. `stack` is as for [`Rewind::take`].
    ///
    /// # Safety
    /// As [`Rewind::take`].
    pub(crate) unsafe fn add(&mut self, stack: Range<usize>) -> io::Result<()> {
        let Some(worker) = &mut self.worker else { return Ok(()) };
        worker.is_adding = false;
        worker.writes.find(self.snapshot.regions(), &self.span)?;
        // SAFETY: the caller's contract.
        let new = unsafe { self.snapshot.add(worker.writes.found(), stack) }?;
        new.iter().try_for_each(|region| worker.writes.watch_again(region))?;
        self.span = self.snapshot.span();
        let is_protecting = worker.writes.is_protecting();
        let bytes_max = if is_protecting { OWN_BYTES_MAX } else { OWN_BYTES_MAX_COPIED };
        if self.snapshot.own_bytes() > bytes_max {
            worker.caches.stop();
        }
        worker.process.accept_mappings()?;
        worker.since_protection = 0;
        worker.faults = None;
        worker.writes.forget(&self.span)
    }

    /// Whether the request can be undone.
    pub(crate) fn check(&self) -> Result<(), Irreversible> {
        self.worker.as_ref().map_or(Ok(()), |worker| worker.process.check())
    }

    /// Undoes a request; returns how many pages were copied back.
    ///
    /// # Safety
    /// As [`Rewind::take`].
    pub(crate) unsafe fn undo(&mut self) -> Result<u64, Irreversible> {
        let Some(worker) = &mut self.worker else { return Ok(0) };
        let is_native = worker.process.restore_attributes()?;
        worker.process.restore()?;
        worker.kept.save();
        for at in worker.process.restore_mappings(&self.snapshot, is_native)? {
            let region = &self.snapshot.regions()[at];
            // SAFETY: the caller's contract.
            let mapped = unsafe { self.snapshot.map_again(region) };
            worker.faults = None;
            mapped
                .and_then(|()| worker.writes.watch_again(region))
                .map_err(|_| Irreversible::Kernel("mmap"))?;
        }
        if is_native {
            worker.process.check_code()?;
        }
        worker.since_protection += 1;
        let is_protecting = worker.since_protection >= REQUESTS_PER_PROTECTION;
        // SAFETY: the caller's contract.
        let restored =
            unsafe { worker.restore_memory(&self.snapshot, &self.span, is_protecting, is_native) };
        let bytes = restored.map_err(|_| Irreversible::Kernel("the page map"))?;
        worker.verify(&self.snapshot);
        worker.kept.put_back();
        worker.caches.end_request();
        Ok((bytes / snapshot::PAGE_BYTES) as u64)
    }
}

impl Worker {
    /// Compares the memory with the snapshot, if that was asked for.
    fn verify(&mut self, snapshot: &Snapshot) {
        if !self.is_verifying {
            return;
        }
        if let Some(address) = snapshot.first_difference(&self.kept.addresses()) {
            eprintln!("outboard-php: after a rewind the memory differs at {address:#x}");
            std::process::abort();
        }
        // Reading has faulted. Without this a worker that is verified would never rely on an equal number.
        self.faults = Some(faults());
    }

    /// Returns how many bytes were copied back, besides the stack.
    ///
    /// # Safety
    /// As [`Rewind::take`].
    unsafe fn restore_memory(
        &mut self,
        snapshot: &Snapshot,
        span: &Range<usize>,
        is_protecting: bool,
        is_native: bool,
    ) -> io::Result<usize> {
        let mut bytes = 0;
        let has_faulted = hides_children() || self.faults != Some(faults());
        if is_protecting && !self.writes.is_protecting() {
            // SAFETY: the caller's contract.
            unsafe { snapshot.restore_all() }?;
        } else {
            if is_native {
                self.writes.read_all(snapshot.regions())?;
            } else if has_faulted {
                self.writes.find(snapshot.regions(), span)?;
            }
            // SAFETY: as above.
            bytes = unsafe { snapshot.restore(self.writes.found()) };
        }
        if is_protecting {
            self.since_protection = 0;
            self.writes.forget(span)?;
        }
        // SAFETY: as above.
        unsafe {
            snapshot.restore_stack();
            snapshot.clear_stack(self.process.bottom_of_stack(), has_faulted);
        }
        self.faults = Some(faults());
        Ok(bytes)
    }
}

/// How this process's workers will find writes.
fn probe() -> io::Result<WritesBy> {
    // SAFETY: changes nothing.
    if unsafe { libc::sysconf(libc::_SC_PAGESIZE) } != snapshot::PAGE_BYTES as libc::c_long {
        let why = "the kernel's pages are not of 4 KiB";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    if std::env::var_os(FORBID).is_some() {
        return Err(io::Error::other(format!("{FORBID} is set")));
    }
    Writes::probe()
}

/// Whether this request has changed SIGCHLD.
fn hides_children() -> bool {
    // SAFETY: reads a variable.
    unsafe { outboard_process_hides_children() }
}

/// Of all threads and children, those included that have ended: a child's write to this process's memory, by
/// `/proc/PID/mem` or `process_vm_writev`, is a fault of the child. No child is left when a request ends, and where
/// a request has changed SIGCHLD, so that the kernel may not count its children, the number is not relied on. A page of
/// the snapshot that was in swap space is read back by a fault that counts as a major one.
fn faults() -> i64 {
    faults_of(libc::RUSAGE_SELF) + faults_of(libc::RUSAGE_CHILDREN)
}

fn faults_of(who: libc::c_int) -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills in the structure, for which zeros are valid as well.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        let usage = usage.assume_init();
        usage.ru_minflt + usage.ru_majflt
    }
}

fn thread_id() -> i32 {
    // SAFETY: a plain system call.
    unsafe { libc::gettid() }
}
