//! The structures that the engine's C side and Rust hand to each other. `build/boundary.rs` declares them in C, with
//! the comments of their fields.

use crate::fetches::FetchResult;
use std::ffi::{c_char, c_void};
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
pub(crate) struct Pair {
    pub(crate) name: Str,
    pub(crate) value: Str,
}

/// A request for C; it points to its frame and scratch.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Request {
    pub(super) method: Str,
    pub(super) uri: Str,
    pub(super) query: Str,
    pub(super) script_filename: Str,
    pub(super) script_name: Str,
    pub(super) path_info: Str,
    pub(super) document_root: Str,
    pub(super) document_uri: Str,
    pub(super) protocol: Str,
    pub(super) content_type: Str,
    pub(super) remote_addr: Str,
    pub(super) server_addr: Str,
    pub(super) server_name: Str,
    pub(super) scheme: Str,
    pub(super) request_id: Str,
    pub(super) headers: *const Pair,
    pub(super) header_count: usize,
    pub(super) params: *const Pair,
    pub(super) param_count: usize,
    /// -1: the request has no body.
    pub(super) content_length: i64,
    pub(super) received_us: u64,
    /// 0: a Unix socket.
    pub(super) remote_port: u16,
    pub(super) server_port: u16,
    /// Of ring's `TraceDetail`. 0: no spans, 1: spans, 2: with statements.
    pub(super) trace_detail: u8,
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
    pub(super) outcome: i32,
    /// The worker must exit.
    pub(super) leaving: bool,
    /// The script has called `Outboard\snapshot()` in classic mode.
    pub(super) takes_snapshot: bool,
    /// The response is what the script meant (`request/handled.c`).
    pub(super) handled: bool,
    /// It is not, whatever follows.
    pub(super) spoiled: bool,
    pub(super) peak_memory_bytes: u64,
}

#[repr(C)]
pub(super) struct RawFacts {
    pub(super) php_version: *const c_char,
    /// NULL: none was read.
    pub(super) ini_file: *const c_char,
    pub(super) post_max_bytes: u64,
    pub(super) opcache: bool,
}

/// The request that a backtrace is about.
#[repr(C)]
#[derive(Default)]
pub(super) struct Subject {
    /// 0: none.
    pub(super) running: u32,
    pub(super) slot: u32,
    pub(super) generation: u32,
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
    /// 0: none; else ring's `Failure`, and `body` is the message.
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
