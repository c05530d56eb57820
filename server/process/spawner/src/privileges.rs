//! Capabilities of the spawner.
//!
//! Called once, after the grants were received. Invariant: dropped capabilities cannot be regained,
//! neither by the spawner nor by its children.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use std::io;

/// To become other users, to kill their processes, and to read what only root can read: a key, or a
/// host below a home directory.
const NEEDED: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::DAC_READ_SEARCH);

/// Drops all other capabilities.
pub(crate) fn drop_all_but_needed() -> io::Result<()> {
    clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().difference(NEEDED) {
        match remove_capability_from_bounding_set(capability) {
            // An older kernel does not know the capability.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            // A container may forbid changes of the bounding set.
            Err(rustix::io::Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let present = rustix::thread::capabilities(None)?.permitted;
    let needed = present.intersection(NEEDED);
    let sets = CapabilitySets {
        effective: needed,
        permitted: needed,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
