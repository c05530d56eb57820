//! Calls to the gateway whose result is a number. Called by `page_cache.c` and `snapshot.c`, in requests and outside.
//!
//! Invariant: the gateway has done everything when a call returns; a negative result means that it cannot be reached.

use super::{slice, with};
use crate::engine::structures::Str;
use crate::link::Link;
use outboard_ring::frame::Tag;
use outboard_ring::operation::Call;
use outboard_ring::purge::{PurgeCall, Selected};
use std::cell::RefMut;
use std::ffi::{c_char, c_void};

/// The maximum size of an operation besides its selectors, and of a selector besides its text.
const OVERHEAD_BYTES: usize = 16;

/// Makes the call `OUTBOARD_CALL_…` with a text, which is short, or empty.
///
/// # Safety
/// As [`make`]; `text` is readable for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_number(
    exchange: *mut c_void,
    events: *mut c_void,
    kind: u8,
    text: *const c_char,
    len: usize,
) -> i64 {
    // SAFETY: this function's contract.
    let Ok(call) = Call::decode(kind, unsafe { slice(text, len) }) else { return -1 };
    // SAFETY: this function's contract.
    unsafe { make(exchange, events, |link, request| link.number(request, call)) }
}

/// Purges pages of the app's cache; the number of pages.
///
/// # Safety
/// As [`make`]; `kinds` and `texts` are readable for `count` elements, the texts with their bytes.
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
    let selected: Vec<_> = selected.collect();
    // SAFETY: this function's contract.
    unsafe { make(exchange, events, |link, request| purge(link, request, is_soft, &selected)) }
}

/// Makes calls for the request or, without one, for the worker script. Outside of both there is no gateway.
///
/// # Safety
/// `exchange` is NULL or valid for [`with`], `events` NULL or valid for [`super::worker_script::with`].
unsafe fn make(
    exchange: *mut c_void,
    events: *mut c_void,
    calls: impl FnOnce(&mut Link, Tag) -> Option<u64>,
) -> i64 {
    let number = if !exchange.is_null() {
        // SAFETY: this function's contract.
        unsafe { with(exchange, None, |exchange| calls(&mut exchange.link(), exchange.tag())) }
    } else if !events.is_null() {
        let calls = |mut link: RefMut<'_, Link>| calls(&mut link, Tag::default());
        // SAFETY: this function's contract.
        unsafe { super::worker_script::with(events, |script| script.link().and_then(calls)) }
    } else {
        None
    };
    number.and_then(|number| i64::try_from(number).ok()).unwrap_or(-1)
}

/// Purges in as many calls as it takes; `None` if one fails, or a selector does not fit.
fn purge(link: &mut Link, request: Tag, is_soft: bool, selected: &[Selected<'_>]) -> Option<u64> {
    let most_bytes = link.largest_piece_bytes - OVERHEAD_BYTES;
    let (mut rest, mut purged) = (selected, 0);
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(fitting(rest, most_bytes));
        if batch.is_empty() {
            return None;
        }
        let call = PurgeCall { is_soft, selected: batch.to_vec() };
        purged += link.number(request, Call::Purge(call))?;
        rest = later;
    }
    Some(purged)
}

/// How many of these selectors fit into one operation.
fn fitting(selected: &[Selected<'_>], most_bytes: usize) -> usize {
    let mut taken_bytes = 0;
    let fits = |one: &&Selected<'_>| {
        taken_bytes += OVERHEAD_BYTES + one.text().len();
        taken_bytes <= most_bytes
    };
    selected.iter().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_go_in_batches_that_fit() {
        let selected = [Selected::Tag(&[b'a'; 84]), Selected::All, Selected::Url(&[b'b'; 100])];
        assert_eq!(fitting(&selected, 1000), 3);
        assert_eq!(fitting(&selected, 116), 2);
        assert_eq!(fitting(&selected, 100), 1);
        assert_eq!(fitting(&selected, 99), 0);
    }
}
