//! The PHP engine for Rust: the counterpart of `sapi/outboard.h`.
//!
//! Called by the zygote (start) and the worker (requests). Invariants: the structures have C's
//! layout, which is checked at start-up; all calls are made on the process's only thread; no
//! longjmp leaves the C side.

use crate::fetches::FetchResult;
use outboard_ring::frame::Tag;
use outboard_ring::request::{Field, RequestView};
use outboard_ring::response::Outcome;
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

/// A string of the request; the byte after it is NUL.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Str {
    pub(crate) ptr: *const c_char,
    pub(crate) len: usize,
}

impl Default for Str {
    fn default() -> Self {
        Self { ptr: c"".as_ptr(), len: 0 }
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Self {
        Self { ptr: bytes.as_ptr().cast(), len: bytes.len() }
    }
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Pair {
    name: Str,
    value: Str,
}

/// A request for C; it points to its frame and scratch.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Request {
    method: Str,
    uri: Str,
    query: Str,
    script_filename: Str,
    script_name: Str,
    path_info: Str,
    document_root: Str,
    document_uri: Str,
    protocol: Str,
    content_type: Str,
    remote_addr: Str,
    server_addr: Str,
    server_name: Str,
    scheme: Str,
    request_id: Str,
    headers: *const Pair,
    header_count: usize,
    params: *const Pair,
    param_count: usize,
    content_length: i64,
    received_us: u64,
    remote_port: u16,
    server_port: u16,
    trace_detail: u8,
}

impl Default for Request {
    fn default() -> Self {
        let empty = Str::default();
        Self {
            method: empty,
            uri: empty,
            query: empty,
            script_filename: empty,
            script_name: empty,
            path_info: empty,
            document_root: empty,
            document_uri: empty,
            protocol: empty,
            content_type: empty,
            remote_addr: empty,
            server_addr: empty,
            server_name: empty,
            scheme: empty,
            request_id: empty,
            headers: ptr::null(),
            header_count: 0,
            params: ptr::null(),
            param_count: 0,
            content_length: -1,
            received_us: 0,
            remote_port: 0,
            server_port: 0,
            trace_detail: 0,
        }
    }
}

/// `outboard_result`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct RawResult {
    outcome: i32,
    leaving: bool,
    takes_snapshot: bool,
    peak_memory_bytes: u64,
}

impl From<RawResult> for RequestResult {
    fn from(raw: RawResult) -> Self {
        let outcome = match raw.outcome {
            0 => Outcome::Finished,
            2 => Outcome::Refused,
            _ => Outcome::Failed,
        };
        Self {
            outcome,
            leaving: raw.leaving,
            takes_snapshot: raw.takes_snapshot,
            peak_memory_bytes: raw.peak_memory_bytes,
        }
    }
}

#[repr(C)]
struct RawFacts {
    php_version: *const c_char,
    ini_file: *const c_char,
    post_max_bytes: u64,
    opcache: bool,
}

/// The request that a backtrace is about.
#[repr(C)]
#[derive(Default)]
struct Subject {
    running: u32,
    slot: u32,
    generation: u32,
}

/// `outboard_event`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawEvent {
    pub(crate) kind: i32,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) id: u64,
    pub(crate) exchange: *mut c_void,
    pub(crate) request: *const Request,
}

/// `outboard_fetch`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawFetch {
    pub(crate) method: Str,
    pub(crate) url: Str,
    pub(crate) headers: Str,
    pub(crate) body: Str,
    pub(crate) connect_timeout_ms: u32,
    pub(crate) timeout_ms: u32,
    pub(crate) max_body_bytes: u32,
    pub(crate) max_redirects: u16,
    pub(crate) retries: u8,
    pub(crate) verify: bool,
    pub(crate) decompress: bool,
    pub(crate) http2: bool,
}

/// `outboard_fetch_result`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawFetchResult {
    pub(crate) failure: i32,
    pub(crate) status: u16,
    pub(crate) http_version: u8,
    pub(crate) url: Str,
    pub(crate) headers: Str,
    pub(crate) body: Str,
}

impl From<FetchResult<'_>> for RawFetchResult {
    fn from(fetched: FetchResult<'_>) -> Self {
        match fetched {
            FetchResult::Response(head, body) => Self {
                failure: 0,
                status: head.status,
                http_version: head.http_version,
                url: head.url.into(),
                headers: head.headers.into(),
                body: body.into(),
            },
            FetchResult::Failed(failure, why) => Self {
                failure: failure as i32,
                status: 0,
                http_version: 0,
                url: [][..].into(),
                headers: [][..].into(),
                body: why.into(),
            },
        }
    }
}

/// `outboard_stream_event`
#[repr(C)]
pub(crate) struct RawStreamEvent {
    pub(crate) kind: i32,
    pub(crate) port: u32,
    pub(crate) item: u64,
    pub(crate) session: u64,
    pub(crate) bytes: Str,
}

unsafe extern "C" {
    static outboard_layout: [usize; 10];
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
    fn outboard_request_run(request: *const Request, exchange: *mut c_void, result: *mut RawResult);
    fn outboard_swoole_exit_status() -> i32;
    fn outboard_swoole_prepare(count: i32, arguments: *const *const c_char);
    fn outboard_worker_script_run(
        script: *const c_char,
        events: *mut c_void,
        frankenphp: bool,
        concurrency: u32,
        state_report: *const c_char,
        boot_request: *const Request,
    ) -> bool;
    fn outboard_time_limit_start() -> bool;
    fn outboard_crash_announce_to(mark: *mut u32, bell: RawFd);
    fn outboard_backtrace_install(signal_number: i32);
    fn outboard_backtrace_begin(slot: u32, generation: u32);
    fn outboard_backtrace_end();
    fn outboard_backtrace_subject(pid: i32, found: *mut Subject) -> bool;
    fn outboard_backtrace_root() -> *const c_void;
    fn outboard_backtrace_from(pid: i32, root: *const c_void);
}

/// Whether the shim reports the files that this process uses.
pub(crate) fn record_boot_files(record: bool) {
    // SAFETY: sets a variable of the C side.
    unsafe { outboard_boot_files_record(record) }
}

/// Fails if the shim and this file were built from different sources.
fn check_layouts() {
    let here = [
        size_of::<Str>(),
        size_of::<Pair>(),
        size_of::<Request>(),
        size_of::<RawResult>(),
        size_of::<RawFacts>(),
        size_of::<Subject>(),
        size_of::<RawEvent>(),
        size_of::<RawFetch>(),
        size_of::<RawFetchResult>(),
        size_of::<RawStreamEvent>(),
    ];
    // SAFETY: a constant array of the C side.
    let there = unsafe { outboard_layout };
    assert_eq!(here, there, "the C shim has other structures");
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
    check_layouts();
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
    // SAFETY: the engine has started; `raw` has C's layout (`check_layouts`).
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

/// Where this process announces that it is about to die of a fault or an exit: by a number at `mark`, then by a ring
/// of `bell`. Both have to be there for as long as the process.
pub(crate) fn announce_death_to(mark: *mut u32, bell: RawFd) {
    // SAFETY: stores both; the mark is written to in this process only (crash.c).
    unsafe { outboard_crash_announce_to(mark, bell) }
}

/// Writes a PHP backtrace on `signal` from now on.
pub(crate) fn install_backtrace(signal: i32) {
    // SAFETY: sets a signal handler that is async-signal-safe (backtrace.c).
    unsafe { outboard_backtrace_install(signal) }
}

/// The request that a worker of this zygote runs: `Ok(None)` between requests.
pub(crate) fn subject_of(pid: i32) -> Result<Option<Tag>, Unreadable> {
    let mut found = Subject::default();
    // SAFETY: `found` has C's layout (`check_layouts`); the C side reads the other process with a
    // system call that fails without permission.
    if !unsafe { outboard_backtrace_subject(pid, &raw mut found) } {
        return Err(Unreadable);
    }
    let tag = Tag { slot: found.slot, generation: found.generation };
    Ok((found.running != 0).then_some(tag))
}

/// The kernel does not let the zygote read its worker's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unreadable;

/// The address of PHP's pointer to the innermost frame, which is the same in forks.
pub(crate) fn backtrace_root() -> usize {
    // SAFETY: takes an address and reads nothing.
    unsafe { outboard_backtrace_root() }.addr()
}

/// Writes the backtrace of another process of this program, whose pointer is at `root`,
/// through [`crate::backtrace`].
pub(crate) fn write_backtrace_from(pid: i32, root: usize) {
    // SAFETY: as in `subject_of`; `root` is an address in the other process and is not read here.
    unsafe { outboard_backtrace_from(pid, ptr::without_provenance(root)) }
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestResult {
    pub(crate) outcome: Outcome,
    /// The worker must exit.
    pub(crate) leaving: bool,
    /// The script has called `Outboard\snapshot()` in classic mode.
    pub(crate) takes_snapshot: bool,
    pub(crate) peak_memory_bytes: u64,
}

/// Reused memory for the header pointers of a request.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    headers: Vec<Pair>,
    params: Vec<Pair>,
}

/// Runs one request. The callbacks get `exchange` unchanged.
///
/// A backtrace requested meanwhile is for `tag`.
///
/// # Safety
/// `exchange` is valid for the callbacks of [`crate::callbacks`], and nothing else uses its target
/// until this returns.
pub(crate) unsafe fn run(
    view: &RequestView<'_>,
    tag: Tag,
    exchange: *mut c_void,
    scratch: &mut Scratch,
) -> RequestResult {
    let request = Request::describe(view, scratch);
    let mut raw = RawResult::default();
    // SAFETY:
    // * `request` and all it points to outlive the call; every string of a validated frame is
    //   followed by a NUL;
    // * `exchange` by this function's contract;
    // * the C side catches bailouts, and no Rust frame lies between it and the engine.
    unsafe {
        outboard_backtrace_begin(tag.slot, tag.generation);
        outboard_request_run(&raw const request, exchange, &raw mut raw);
        outboard_backtrace_end();
    }
    raw.into()
}

/// How the script has ended: the number of exit(), or 255 after a fatal error.
pub(crate) fn exit_status() -> u8 {
    // SAFETY: reads a number of the engine.
    u8::try_from(unsafe { outboard_swoole_exit_status() } & 0xff).unwrap_or(u8::MAX)
}

/// Declares that [`run_worker_script`] runs a program for Swoole. Once per process.
pub(crate) fn prepare_swoole(arguments: &[String]) {
    let texts: Vec<CString> =
        arguments.iter().filter_map(|argument| CString::new(argument.as_str()).ok()).collect();
    // They are needed as long as the process lives.
    let texts = Vec::leak(texts);
    let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    let pointers = Vec::leak(pointers);
    // SAFETY: `pointers` has this many elements, and neither it nor the texts are ever freed.
    unsafe { outboard_swoole_prepare(pointers.len() as i32, pointers.as_ptr()) }
}

/// Runs a worker script to its end. False if it ended without a call for a request, or if the
/// engine has failed.
///
/// # Safety
/// `events` is valid for the callbacks of [`crate::callbacks`], and nothing else uses its target
/// until this returns.
pub(crate) unsafe fn run_worker_script(
    script: &CStr,
    events: *mut c_void,
    frankenphp: bool,
    concurrency: u32,
    state_report: Option<&CStr>,
    boot_request: Option<&Request>,
) -> bool {
    let state_report = state_report.map_or(std::ptr::null(), CStr::as_ptr);
    let boot_request = boot_request.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: this function's contract; the C side catches bailouts, and switches between stacks
    // only in calls of its own, so Rust frames are left in order.
    unsafe {
        outboard_worker_script_run(
            script.as_ptr(),
            events,
            frankenphp,
            concurrency,
            state_report,
            boot_request,
        )
    }
}

const _: () = {
    assert!(Outcome::Finished as u8 == 0);
    assert!(Outcome::Failed as u8 == 1);
    assert!(Outcome::Refused as u8 == 2);
};

fn fill<'a>(target: &mut Vec<Pair>, pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
    target.clear();
    target.extend(pairs.map(|(name, value)| Pair { name: name.into(), value: value.into() }));
}

impl Request {
    /// `view` and `scratch` outlive the request.
    pub(crate) fn describe(view: &RequestView<'_>, scratch: &mut Scratch) -> Self {
        fill(&mut scratch.headers, view.headers());
        fill(&mut scratch.params, view.params());
        let field = |field| Str::from(view.field(field));
        Self {
            method: field(Field::Method),
            uri: field(Field::Uri),
            query: field(Field::Query),
            script_filename: field(Field::ScriptFilename),
            script_name: field(Field::ScriptName),
            path_info: field(Field::PathInfo),
            document_root: field(Field::DocumentRoot),
            document_uri: field(Field::DocumentUri),
            protocol: field(Field::Protocol),
            content_type: field(Field::ContentType),
            remote_addr: field(Field::RemoteAddr),
            server_addr: field(Field::ServerAddr),
            server_name: field(Field::ServerName),
            scheme: field(Field::Scheme),
            request_id: field(Field::RequestId),
            headers: scratch.headers.as_ptr(),
            header_count: scratch.headers.len(),
            params: scratch.params.as_ptr(),
            param_count: scratch.params.len(),
            content_length: content_length(view),
            received_us: view.fixed.received_us,
            remote_port: view.fixed.remote_port,
            server_port: view.fixed.server_port,
            trace_detail: view.fixed.trace_detail as u8,
        }
    }
}

fn content_length(view: &RequestView<'_>) -> i64 {
    view.fixed.content_length.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX))
}
