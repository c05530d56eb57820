//! [`KeptVariables`]: the few variables in PHP's memory that a rewind leaves as they are.
//!
//! Some of the shim's (`OUTBOARD_KEPT` in `sapi/kept.h`), because they say what this process is in memory
//! that is shared with others. The C library's copies of the thread's id, which a fork has changed: locks in
//! shared memory recognise their owner by it (`pthread_rwlock_wrlock` in glibc). And the thread's area of
//! rseq(2), to which the kernel writes at any time. Used by the rewind alone.

use super::snapshot::Snapshot;
use std::ffi::c_void;
use std::ops::Range;
use std::slice;

/// Larger than the C library's description of a thread, which `pthread_self` points to.
const THREAD_BYTES: usize = 2304;

unsafe extern "C" {
    fn outboard_kept_variables(bytes: *mut usize) -> *mut c_void;
    fn outboard_rseq_area(bytes: *mut usize) -> *mut c_void;
}

/// See the module.
#[derive(Debug)]
pub(super) struct KeptVariables(Vec<Variable>);

#[derive(Debug)]
struct Variable {
    address: *mut u8,
    value: Vec<u8>,
}

impl Variable {
    /// # Safety
    /// The address is that of a variable of this size, which lives as long as the process.
    unsafe fn new(address: *mut u8, bytes: usize) -> Self {
        let mut variable = Self { address, value: vec![0; bytes] };
        variable.save();
        variable
    }

    fn save(&mut self) {
        if !self.value.is_empty() {
            // SAFETY: by the contract of `new`; the process has one thread.
            let now = unsafe { slice::from_raw_parts(self.address, self.value.len()) };
            self.value.copy_from_slice(now);
        }
    }

    fn put_back(&self) {
        if self.value.is_empty() {
            return;
        }
        // SAFETY: as above; the variable has had this value.
        unsafe { self.address.copy_from_nonoverlapping(self.value.as_ptr(), self.value.len()) };
    }
}

impl KeptVariables {
    /// In a worker that was just forked, from a process with the id `zygote`.
    pub(super) fn find(snapshot: &Snapshot, zygote: i32) -> Self {
        let mut found = Vec::new();
        for area in [outboard_kept_variables, outboard_rseq_area] {
            let mut bytes = 0;
            // SAFETY: both return the address and size of variables that live as long as the process.
            found.push(unsafe {
                let address = area(&raw mut bytes);
                Variable::new(address.cast(), bytes)
            });
        }
        for address in thread_ids(snapshot, zygote) {
            // SAFETY: in the thread's description, which lives as long as the thread.
            found.push(unsafe { Variable::new(address.cast(), size_of::<i32>()) });
        }
        Self(found)
    }

    /// Before memory is put back.
    pub(super) fn save(&mut self) {
        self.0.iter_mut().for_each(Variable::save);
    }

    /// After memory was put back.
    pub(super) fn put_back(&self) {
        self.0.iter().for_each(Variable::put_back);
    }

    /// In the order of their addresses.
    pub(super) fn addresses(&self) -> Vec<Range<usize>> {
        let range = |variable: &Variable| {
            variable.address.addr()..variable.address.addr() + variable.value.len()
        };
        let mut ranges: Vec<Range<usize>> = self.0.iter().map(range).collect();
        ranges.sort_by_key(|range| range.start);
        ranges
    }
}

/// The words of the thread's description that had the zygote's id and have this thread's.
fn thread_ids(snapshot: &Snapshot, zygote: i32) -> Vec<*mut i32> {
    // SAFETY: changes nothing.
    let (thread_id, thread) = unsafe { (libc::gettid(), libc::pthread_self() as usize) };
    let words = (thread..thread + THREAD_BYTES).step_by(size_of::<i32>());
    let is_id = |address: &usize| {
        // SAFETY: in the description, which is mapped and aligned.
        snapshot.word_at(*address) == Some(zygote)
            && unsafe { *(*address as *const i32) } == thread_id
    };
    words.filter(is_id).map(|address| address as *mut i32).collect()
}
