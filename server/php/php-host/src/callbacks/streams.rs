//! Raw connections. Called by the C of programs that start a server. If a function states no safety contract, it has
//! that of [`with`].

use super::slice;
use super::worker_script::with;
use crate::engine::structures::{RawStreamEvent, Str};
use crate::worker_script::RunningScript;
use outboard_ring::stream::{StreamCall, Verb};
use std::ffi::{c_char, c_int, c_void};

/// What C passes on of a call.
#[repr(C)]
pub(crate) struct RawStreamCall {
    verb: c_int,
    item: u64,
    session: u64,
    value: u64,
    bytes: *const c_char,
    len: usize,
}

impl RawStreamCall {
    /// # Safety
    /// The bytes are readable.
    unsafe fn read<'a>(&self) -> Option<StreamCall<'a>> {
        Some(StreamCall {
            verb: u8::try_from(self.verb).ok().and_then(Verb::from_wire)?,
            is_last: true,
            item: self.item,
            session: self.session,
            value: self.value,
            // SAFETY: the caller's contract.
            bytes: unsafe { slice(self.bytes, self.len) },
        })
    }
}

/// False if there is no event. Its bytes live until the next call.
///
/// # Safety
/// As [`with`]; `event` is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_stream_take(
    events: *mut c_void,
    event: *mut RawStreamEvent,
) -> bool {
    let take = |script: &mut RunningScript| {
        let Some(received) = script.stream_event() else { return false };
        let raw = RawStreamEvent {
            kind: received.kind.into(),
            port: received.port.into(),
            item: received.item,
            session: received.session,
            bytes: Str::from(&received.bytes[..]),
        };
        // SAFETY: this function's contract.
        unsafe { event.write(raw) };
        true
    };
    // SAFETY: this function's contract.
    unsafe { with(events, take) }
}

/// Makes a call; the gateway sees it with `publish`, or later. False if there is no such call.
///
/// # Safety
/// As [`with`]; `call` and its bytes are readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_stream_call(
    events: *mut c_void,
    call: *const RawStreamCall,
    publish: bool,
) -> bool {
    // SAFETY: this function's contract.
    let Some(call) = (unsafe { (*call).read() }) else { return false };
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.stream_call(&call, publish)) }
}

/// Makes a query and waits for its result, which lives until the next one. False if there is none.
///
/// # Safety
/// As [`outboard_rs_stream_call`]; `result` is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_stream_query(
    events: *mut c_void,
    call: *const RawStreamCall,
    result: *mut Str,
) -> bool {
    // SAFETY: this function's contract.
    let call = unsafe { (*call).read() };
    let Some(call) = call.filter(|call| call.verb.is_query()) else { return false };
    let query = |script: &mut RunningScript| match script.stream_query(call) {
        Some(text) => {
            // SAFETY: this function's contract.
            unsafe { result.write(text.into()) };
            true
        }
        None => false,
    };
    // SAFETY: this function's contract.
    unsafe { with(events, query) }
}
