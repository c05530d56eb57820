//! Purging the page cache. Called by `page_cache.c`.

use super::{slice, with};
use crate::engine::structures::Str;
use crate::worker_script::RunningScript;
use outboard_ring::frame::Tag;
use outboard_ring::purge::{PurgeCall, Selected};
use std::ffi::{c_char, c_void};

/// Returns how many pages were purged; negative if the gateway cannot be reached.
///
/// # Safety
/// `exchange` is NULL or valid for [`with`], `events` NULL or valid for
/// [`super::worker_script::with`];
/// `kinds` and `texts` are readable for `count` elements, the texts with their bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_purge(
    exchange: *mut c_void,
    events: *mut c_void,
    kinds: *const c_char,
    texts: *const Str,
    count: usize,
    is_soft: bool,
) -> i64 {
    // SAFETY: this function's contract.
    let kinds = unsafe { slice(kinds, count) };
    let texts = match count {
        0 => &[][..],
        // SAFETY: this function's contract.
        _ => unsafe { std::slice::from_raw_parts(texts, count) },
    };
    let selected = kinds.iter().zip(texts).filter_map(|(&kind, text)| {
        // SAFETY: this function's contract.
        Selected::of_kind(kind, unsafe { slice(text.ptr, text.len) })
    });
    let call = PurgeCall { is_soft, selected: selected.collect() };
    let purged = if !exchange.is_null() {
        // SAFETY: this function's contract.
        unsafe { with(exchange, None, |exchange| exchange.purge(&call)) }
    } else if !events.is_null() {
        let purge = |script: &mut RunningScript| script.purge(Tag::default(), &call);
        // SAFETY: this function's contract.
        unsafe { super::worker_script::with(events, purge) }
    } else {
        None
    };
    purged.and_then(|purged| i64::try_from(purged).ok()).unwrap_or(-1)
}
