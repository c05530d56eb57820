//! A worker that writes to the shared memory as it likes, and a gateway of another release.

use super::*;
use crate::corrupt::Corrupt;
use rustix::io::pwrite;
use std::os::fd::OwnedFd;

/// Places in the header. They are part of the protocol: another layout has another version.
const VERSION_AT: u64 = 8;
const REQUEST_BYTES_AT: u64 = 12;
const RESPONSE_BYTES_AT: u64 = 16;
const DYING_AT: u64 = 24;
const REQUESTS_HEAD_AT: u64 = 192;
const RESPONSES_TAIL_AT: u64 = 256;
const BACKTRACE_VERSION_AT: u64 = 384;
const BACKTRACE_LEN_AT: u64 = 388;
const BACKTRACE_GENERATION_AT: u64 = 392;
const BACKTRACE_AT: u64 = 16 * 1024;

fn gateway() -> (GatewayChannel, OwnedFd) {
    GatewayChannel::create(Capacities { request_bytes: 4096, response_bytes: 8192 }, 9).unwrap()
}

fn put(memory: &OwnedFd, at: u64, bytes: &[u8]) {
    assert_eq!(pwrite(memory, bytes, at), Ok(bytes.len()));
}

#[test]
fn memory_of_another_release_is_rejected_with_a_reason() {
    for (at, word) in [
        (0, 0),
        (VERSION_AT, 5),
        (VERSION_AT, u32::MAX),
        (REQUEST_BYTES_AT, 0),
        (REQUEST_BYTES_AT, 4095),
        (REQUEST_BYTES_AT, 8192),
        (RESPONSE_BYTES_AT, u32::MAX),
        (RESPONSE_BYTES_AT, 1 << 31),
    ] {
        let (_gateway, memory) = gateway();
        assert!(WorkerChannel::map(&memory).is_ok());
        put(&memory, at, &word.to_le_bytes());
        let error = WorkerChannel::map(&memory).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{word} at {at}");
        assert_eq!(
            error.to_string(),
            "not a ring of this version: gateway and PHP host must come from the same release"
        );
    }
}

#[test]
fn the_size_of_the_memory_cannot_be_changed() {
    let (_gateway, memory) = gateway();
    let size = rustix::fs::fstat(&memory).unwrap().st_size as u64;
    for other in [0, size - 1, size + 4096] {
        assert_eq!(ftruncate(&memory, other), Err(rustix::io::Errno::PERM), "{other}");
    }
    let seals = rustix::fs::SealFlags::FUTURE_WRITE;
    assert!(rustix::fs::fcntl_add_seals(&memory, seals).is_err(), "the seals are final");
}

#[test]
fn impossible_cursors_of_a_worker_are_corrupt() {
    let mut payload = Vec::new();
    for tail in [1_u64, 15, 8193, u64::MAX] {
        let (mut gateway, memory) = gateway();
        put(&memory, RESPONSES_TAIL_AT, &tail.to_le_bytes());
        assert!(gateway.receive(&mut payload).is_err(), "{tail}");
    }
    for head in [1_u64, 4096, u64::MAX] {
        let (mut gateway, memory) = gateway();
        put(&memory, REQUESTS_HEAD_AT, &head.to_le_bytes());
        assert!(gateway.free_bytes().is_err(), "{head}");
        assert!(gateway.prepare_wait(usize::MAX).is_err(), "{head}");
    }
}

#[test]
fn a_worker_that_sends_nothing_but_zeros_is_corrupt() {
    let (mut gateway, memory) = gateway();
    put(&memory, RESPONSES_TAIL_AT, &4096_u64.to_le_bytes());
    let received = gateway.receive(&mut Vec::new());
    assert_eq!(received, Err(Corrupt { what: "a frame of an unknown kind" }));
}

#[test]
fn a_backtrace_that_a_worker_forges_is_text_within_its_room() {
    let (gateway, memory) = gateway();
    put(&memory, BACKTRACE_GENERATION_AT, &TAG.generation.to_le_bytes());
    put(&memory, BACKTRACE_AT, b"#0 \xff\xfe");
    put(&memory, BACKTRACE_LEN_AT, &5_u32.to_le_bytes());
    assert_eq!(gateway.backtrace(TAG).as_deref(), Some("#0 \u{fffd}\u{fffd}"));
    put(&memory, BACKTRACE_LEN_AT, &u32::MAX.to_le_bytes());
    let text = gateway.backtrace(TAG).unwrap();
    assert_eq!(text.chars().count(), BACKTRACE_BYTES, "nothing after the room is read");
    put(&memory, BACKTRACE_VERSION_AT, &7_u32.to_le_bytes());
    assert_eq!(gateway.backtrace(TAG), None, "it is being written");
}

#[test]
fn a_writer_that_never_ends_keeps_others_from_the_backtrace() {
    let (gateway, memory) = gateway();
    let sink = WorkerChannel::map(&memory).unwrap().backtrace_sink();
    put(&memory, BACKTRACE_VERSION_AT, &1_u32.to_le_bytes());
    sink.publish(b"#0 sleep()", TAG);
    assert_eq!(gateway.backtrace(TAG), None);
    put(&memory, BACKTRACE_VERSION_AT, &(u32::MAX - 1).to_le_bytes());
    sink.publish(b"#0 sleep()", TAG);
    assert_eq!(gateway.backtrace(TAG).as_deref(), Some("#0 sleep()"), "the version begins again");
}

#[test]
fn any_number_in_the_mark_is_a_worker_that_is_dying() {
    let (gateway, memory) = gateway();
    let worker = WorkerChannel::map(&memory).unwrap();
    assert!(!gateway.is_dying());
    for mark in [1_u32, 255, 1 << 31] {
        put(&memory, DYING_AT, &mark.to_le_bytes());
        assert!(gateway.is_dying(), "{mark}");
        assert_eq!(worker.dying_mark().swap(0, std::sync::atomic::Ordering::Relaxed), mark);
    }
    assert!(!gateway.is_dying());
}

#[test]
fn counters_that_a_worker_forges_add_up_without_an_overflow() {
    let worst = Rewinds { count: u64::MAX, us: u64::MAX, pages: 1 };
    let mut total = Rewinds { count: 3, us: 0, pages: 2 };
    total.add(worst);
    total.add(worst);
    assert_eq!(total, Rewinds { count: u64::MAX, us: u64::MAX, pages: 4 });
}

#[test]
fn a_worker_has_the_memory_for_itself() {
    let (_gateway, memory) = gateway();
    let before = exclusions();
    let _worker = WorkerChannel::map(&memory).unwrap();
    assert!(exclusions() > before, "children that it forks do not have it");
}

/// Mappings of this process that forks leave out ("dc", VmFlags in proc(5)).
fn exclusions() -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let flags = maps.lines().filter_map(|line| line.strip_prefix("VmFlags:"));
    flags.filter(|flags| flags.split(' ').any(|flag| flag == "dc")).count()
}
