//! One request that the engine runs: from its frame to C, and how it ended.
//!
//! Called by the worker for each request of classic mode; the loop of a worker script takes its requests as
//! events, which point to the same structure.

use super::backtrace;
use super::structures::{Pair, RawResult, Request, Str};
use outboard_ring::frame::Tag;
use outboard_ring::request::{Field, RequestView};
use outboard_ring::response::Outcome;
use std::ffi::c_void;

unsafe extern "C" {
    fn outboard_request_run(request: *const Request, exchange: *mut c_void, result: *mut RawResult);
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestResult {
    pub(crate) outcome: Outcome,
    /// The worker must exit.
    pub(crate) leaving: bool,
    /// The script has called `Outboard\snapshot()` in classic mode.
    pub(crate) takes_snapshot: bool,
    /// The response is what the script meant.
    pub(crate) handled: bool,
    pub(crate) peak_memory_bytes: u64,
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
            handled: raw.handled,
            peak_memory_bytes: raw.peak_memory_bytes,
        }
    }
}

const _: () = {
    assert!(Outcome::Finished as u8 == 0);
    assert!(Outcome::Failed as u8 == 1);
    assert!(Outcome::Refused as u8 == 2);
};

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
    backtrace::begin(tag);
    // SAFETY:
    // * `request` and all it points to outlive the call; every string of a validated frame is
    //   followed by a NUL;
    // * `exchange` by this function's contract;
    // * the C side catches bailouts, and no Rust frame lies between it and the engine.
    unsafe { outboard_request_run(&raw const request, exchange, &raw mut raw) }
    backtrace::end();
    raw.into()
}

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
