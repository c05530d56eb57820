//! The PHP engine for Rust: what of the C side it calls.
//!
//! This file owns its life and its settings; the modules below run scripts. Called by the zygote (start) and
//! the worker (requests). Invariants: C compiles with these declarations (`build/boundary.rs`); all calls
//! are made on the process's only thread; no longjmp leaves the C side.

pub(crate) mod backtrace;
pub(crate) mod request;
pub(crate) mod structures;
pub(crate) mod worker_script;

use outboard_ring::control::Xdebug;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use structures::RawFacts;

unsafe extern "C" {
    fn outboard_engine_start(
        sapi_name: *const c_char,
        ini_file: *const c_char,
        ini_entries: *const c_char,
    ) -> bool;
    fn outboard_engine_facts_get(facts: *mut RawFacts);
    fn outboard_engine_setting(name: *const c_char, name_len: usize) -> *const c_char;
    fn outboard_engine_fix_ini(name: *const c_char, name_len: usize) -> bool;
    fn outboard_engine_stop();
    fn outboard_children_watch(watch: bool);
    fn outboard_boot_files_record(record: bool);
    fn outboard_time_limit_start() -> bool;
    fn outboard_boot_document_root(path: *const c_char);
    fn outboard_debugger_use(wanted: u32);
    fn outboard_debugger_announce_to(mark: *mut u32);
    fn outboard_crash_announce_to(mark: *mut u32, bell: RawFd);
}

/// Whether the shim reports the files that this process uses.
pub(crate) fn record_boot_files(record: bool) {
    // SAFETY: sets a variable of the C side.
    unsafe { outboard_boot_files_record(record) }
}

/// Facts about the engine after its start.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) php_version: String,
    pub(crate) opcache: bool,
    pub(crate) ini_file: Option<PathBuf>,
    pub(crate) post_max_bytes: u64,
}

/// Starts the engine; once per process. `None` if PHP failed, having printed the reason.
///
/// A fatal error in here ends the process (`exit` inside of libphp).
pub(crate) fn start(
    sapi_name: CString,
    ini_file: Option<CString>,
    ini_entries: CString,
) -> Option<Facts> {
    // The engine uses all three for as long as the process lives.
    let ini_file = ini_file.map_or(ptr::null(), |path| path.into_raw().cast_const());
    // SAFETY: NUL-terminated strings that are never freed; single-threaded, first call.
    let started =
        unsafe { outboard_engine_start(sapi_name.into_raw(), ini_file, ini_entries.into_raw()) };
    started.then(facts)
}

fn facts() -> Facts {
    let mut raw = RawFacts {
        php_version: ptr::null(),
        ini_file: ptr::null(),
        post_max_bytes: 0,
        opcache: false,
    };
    // SAFETY: the engine has started; `raw` has C's layout (`structures`).
    unsafe { outboard_engine_facts_get(&raw mut raw) };
    // SAFETY: strings of the engine that live as long as it, or NULL.
    let text = |ptr: *const c_char| (!ptr.is_null()).then(|| unsafe { CStr::from_ptr(ptr) });
    Facts {
        php_version: text(raw.php_version)
            .map_or_else(String::new, |version| version.to_string_lossy().into_owned()),
        opcache: raw.opcache,
        ini_file: text(raw.ini_file).map(|path| OsStr::from_bytes(path.to_bytes()).into()),
        post_max_bytes: raw.post_max_bytes,
    }
}

/// Forbids scripts to change an ini value; false if PHP knows no such value.
pub(crate) fn fix_ini(name: &str) -> bool {
    // SAFETY: the engine has started; pointer and length are a Rust string's.
    unsafe { outboard_engine_fix_ini(name.as_ptr().cast(), name.len()) }
}

/// The value of a setting after the ini files; `None` if PHP knows no such setting.
pub(crate) fn setting(name: &str) -> Option<String> {
    // SAFETY: the engine has started; pointer and length are a Rust string's. The engine's string is copied
    // at once, while no script runs that could change it.
    unsafe {
        let value = outboard_engine_setting(name.as_ptr().cast(), name.len());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy().into_owned())
    }
}

pub(crate) fn stop() {
    // SAFETY: the engine runs and no request does.
    unsafe { outboard_engine_stop() }
}

/// Enables `max_execution_time` in this worker.
pub(crate) fn start_time_limit() -> io::Result<()> {
    // SAFETY: the engine has started; sets a signal handler that is async-signal-safe
    // (time_limit.c) and a timer of the process.
    let started = unsafe { outboard_time_limit_start() };
    if started { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether forks of this process are a script's from now on; those that create workers are not.
pub(crate) fn watch_children(watch: bool) {
    // SAFETY: sets a flag that the handlers of fork(2) read.
    unsafe { outboard_children_watch(watch) }
}

/// Sets the `DOCUMENT_ROOT` of a worker script that boots.
pub(crate) fn set_document_root(path: CString) {
    // SAFETY: sets a variable of the C side; the string is never freed.
    unsafe { outboard_boot_document_root(path.into_raw()) }
}

/// Sets whether PHP has Xdebug; before [`start`].
pub(crate) fn use_xdebug(wanted: Xdebug) {
    // SAFETY: sets a variable of the C side, which has these numbers in `outboard.h`.
    unsafe { outboard_debugger_use(wanted as u32) }
}

/// Where this process says whether a debugger is attached to it: a place that has to be there for as long as the process.
pub(crate) fn announce_debugger_to(mark: *mut u32) {
    // SAFETY: stores it; the mark is written to in this process only (debugger.c).
    unsafe { outboard_debugger_announce_to(mark) }
}

/// Where this process announces that it is about to die of a fault or an exit: by a number at `mark`, then by a ring
/// of `bell`. Both have to be there for as long as the process.
pub(crate) fn announce_death_to(mark: *mut u32, bell: RawFd) {
    // SAFETY: stores both; the mark is written to in this process only (crash.c).
    unsafe { outboard_crash_announce_to(mark, bell) }
}
