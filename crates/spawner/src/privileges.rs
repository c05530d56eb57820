//! What the spawner keeps of root's rights.
//!
//! Called once, when the gateway has said what it may ask for. Invariant: what is given up here
//! does not come back, for what the spawner starts neither.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use std::io;

/// To become other users, to end their processes, and to read what root alone can read: a key, or
/// a host below somebody's home.
const KEPT: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::DAC_READ_SEARCH);

/// Gives up everything else.
pub(crate) fn keep_what_is_needed() -> io::Result<()> {
    clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().difference(KEPT) {
        match remove_capability_from_bounding_set(capability) {
            // An older kernel does not know it.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            // A container may have taken away the right to give up rights.
            Err(rustix::io::Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let present = rustix::thread::capabilities(None)?.permitted;
    let kept = present.intersection(KEPT);
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
