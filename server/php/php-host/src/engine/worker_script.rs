//! A worker script that the engine runs to its end: a loop of requests, or a program that starts a
//! server.

use super::structures::Request;
use outboard_ring::control::WorkerScript;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

unsafe extern "C" {
    fn outboard_exit_status() -> i32;
    fn outboard_program_prepare(count: i32, arguments: *const *const c_char);
    fn outboard_worker_script_run(
        script: *const c_char,
        events: *mut c_void,
        frankenphp: bool,
        concurrency: u32,
        exit_ends_script: bool,
        state_report: *const c_char,
        boot_request: *const Request,
    ) -> bool;
}

/// How the script has ended: the number of exit(), or 255 after a fatal error.
#[cfg_attr(not(programs), expect(dead_code, reason = "of `outboard-php run`"))]
pub(crate) fn exit_status() -> u8 {
    // SAFETY: reads a number of the engine.
    u8::try_from(unsafe { outboard_exit_status() } & 0xff).unwrap_or(u8::MAX)
}

/// Declares that [`run`] runs a program that starts a server. Once per process.
pub(crate) fn prepare_program(arguments: &[String]) {
    let texts: Vec<CString> =
        arguments.iter().filter_map(|argument| CString::new(argument.as_str()).ok()).collect();
    // They are needed as long as the process lives.
    let texts = Vec::leak(texts);
    let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    let pointers = Vec::leak(pointers);
    // SAFETY: `pointers` has this many elements, and neither it nor the texts are ever freed.
    unsafe { outboard_program_prepare(pointers.len() as i32, pointers.as_ptr()) }
}

/// Runs a worker script to its end. False if it ended without a call for a request, or if the
/// engine has failed.
///
/// # Safety
/// `events` is valid for the callbacks of [`crate::callbacks`], and nothing else uses its target
/// until this returns.
pub(crate) unsafe fn run(
    script: &CStr,
    events: *mut c_void,
    settings: &WorkerScript,
    state_report: Option<&CStr>,
    boot_request: Option<&Request>,
) -> bool {
    let state_report = state_report.map_or(ptr::null(), CStr::as_ptr);
    let boot_request = boot_request.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: this function's contract; the C side catches bailouts, and switches between stacks
    // only in calls of its own, so Rust frames are left in order.
    unsafe {
        outboard_worker_script_run(
            script.as_ptr(),
            events,
            settings.frankenphp,
            settings.concurrency.max(1),
            settings.exit_ends_script,
            state_report,
            boot_request,
        )
    }
}
