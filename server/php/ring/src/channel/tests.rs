//! Both ends of a real memfd in one process; under Miri, of a piece of its heap.

use super::*;
use crate::frame::{FrameKind, Tag};
#[cfg(not(miri))]
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

#[cfg(not(miri))]
mod hostile;

#[cfg(not(miri))]
fn ends() -> (GatewayChannel, WorkerChannel) {
    let (gateway, memory) = GatewayChannel::create(Capacities::default(), 9).unwrap();
    (gateway, WorkerChannel::map(&memory).unwrap())
}

#[cfg(miri)]
fn ends() -> (GatewayChannel, WorkerChannel) {
    let capacities = Capacities { request_bytes: 4096, response_bytes: 8192 };
    let mapping = mapping::Mapping::on_heap(capacities, 9);
    (GatewayChannel::over(mapping.clone()), WorkerChannel::over(mapping))
}

const TAG: Tag = Tag { slot: 3, generation: 41 };

#[test]
fn a_request_and_its_response_cross_the_memory() {
    let (mut gateway, mut worker) = ends();
    assert_eq!(worker.epoch(), 9);
    assert!(gateway.push(FrameKind::Request, TAG, &[b"head"]).unwrap());
    let _ = gateway.publish();
    let mut payload = Vec::new();
    let header = worker.receive(&mut payload).unwrap().unwrap();
    assert_eq!((header.kind, header.tag, &payload[..]), (FrameKind::Request, TAG, &b"head"[..]));
    let _ = worker.release();
    assert!(worker.push(FrameKind::Body, TAG, &[b"hello ", b"world"]).unwrap());
    let _ = worker.publish();
    let header = gateway.receive(&mut payload).unwrap().unwrap();
    assert_eq!((header.kind, &payload[..]), (FrameKind::Body, &b"hello world"[..]));
}

#[test]
fn an_abort_reaches_only_its_own_request() {
    let (gateway, worker) = ends();
    gateway.abort(TAG);
    assert!(worker.is_aborted(TAG));
    assert!(!worker.is_aborted(Tag { slot: 3, generation: 42 }));
}

#[test]
fn a_backtrace_is_read_only_for_its_own_request() {
    let (gateway, worker) = ends();
    let sink = worker.backtrace_sink();
    assert_eq!(gateway.backtrace(TAG), None);
    sink.publish(b"#0 sleep()", TAG);
    assert_eq!(gateway.backtrace(TAG).as_deref(), Some("#0 sleep()"));
    assert_eq!(gateway.backtrace(Tag { slot: 3, generation: 40 }), None);
    sink.publish(&[b'x'; BACKTRACE_BYTES + 1], TAG);
    assert_eq!(gateway.backtrace(TAG).unwrap().len(), BACKTRACE_BYTES);
}

#[test]
#[cfg(not(miri))]
fn backtraces_of_two_writers_are_not_mixed() {
    let (gateway, memory) = GatewayChannel::create(Capacities::default(), 9).unwrap();
    let memory = &memory;
    std::thread::scope(|scope| {
        let writers = [[b'a'; 3000].as_slice(), &[b'b'; 1000]].map(|text| {
            scope.spawn(move || {
                let sink = WorkerChannel::map(memory).unwrap().backtrace_sink();
                for _ in 0..100_000 {
                    sink.publish(text, TAG);
                }
            })
        });
        let (long, short) = ("a".repeat(3000), "b".repeat(1000));
        while !writers.iter().all(|writer| writer.is_finished()) {
            let text = gateway.backtrace(TAG);
            assert!(text.is_none_or(|text| text == long || text == short), "two texts are mixed");
        }
        assert!(gateway.backtrace(TAG).is_some());
    });
}

#[test]
#[cfg(not(miri))]
fn foreign_memory_is_refused() {
    let memory = memfd_create("foreign", MemfdFlags::CLOEXEC).unwrap();
    assert!(WorkerChannel::map(&memory).is_err(), "empty");
    ftruncate(&memory, Capacities::default().total_bytes() as u64).unwrap();
    assert!(WorkerChannel::map(&memory).is_err(), "no magic");
}

#[test]
fn an_offered_request_is_had_by_one_side_only() {
    let (gateway, worker) = ends();
    let next = Tag { slot: TAG.slot + 1, generation: TAG.generation + 1 };
    gateway.offer(TAG);
    gateway.offer(next);
    assert!(worker.start(TAG));
    assert!(!gateway.withdraw(TAG), "it is being answered");
    assert!(gateway.withdraw(next));
    assert!(!worker.start(next), "it was given to another worker");
    assert!(
        !worker.start(Tag { generation: TAG.generation + LEASES as u32, ..TAG }),
        "not offered"
    );
}

#[test]
fn frames_go_round_the_end_of_the_memory_many_times() {
    let (mut gateway, mut worker) = ends();
    let mut payload = Vec::new();
    for round in 0..40_u8 {
        let sent = vec![round; 1000];
        assert!(gateway.push(FrameKind::RequestBody, TAG, &[&sent[..400], &sent[400..]]).unwrap());
        let _ = gateway.publish();
        worker.receive(&mut payload).unwrap().unwrap();
        assert_eq!(payload, sent);
        let _ = worker.release();
        assert!(worker.push(FrameKind::Body, TAG, &[&payload]).unwrap());
        let _ = worker.publish();
        gateway.receive(&mut payload).unwrap().unwrap();
        assert_eq!(payload, sent);
        let _ = gateway.release();
    }
}

#[test]
fn a_pause_is_a_state_of_a_started_request() {
    let (gateway, worker) = ends();
    gateway.offer(TAG);
    assert!(!gateway.pause(TAG), "it has not started");
    assert!(worker.start(TAG));
    assert!(!gateway.resume(TAG), "it is not paused");
    assert!(gateway.pause(TAG));
    assert!(worker.is_paused(TAG) && !worker.is_aborted(TAG));
    assert!(!gateway.pause(TAG), "it is paused already");
    gateway.abort(TAG);
    assert!(!gateway.resume(TAG), "its client has disconnected");
    assert!(worker.is_aborted(TAG) && !worker.is_paused(TAG));
    assert!(worker.start(TAG), "it is run as it would have been a moment earlier");
}

#[test]
fn each_call_has_a_counter_of_its_own() {
    let (gateway, worker) = ends();
    for (index, call) in WaitCall::ALL.into_iter().enumerate() {
        (0..index).for_each(|_| worker.count_suspended(call));
        worker.count_blocked(call, 10);
        worker.count_blocked(call, index as u64);
    }
    for (index, call) in WaitCall::ALL.into_iter().enumerate() {
        let index = index as u64;
        let expected = Waits { suspended: index, blocked: 2, blocked_us: 10 + index };
        assert_eq!(gateway.waits(call), expected, "{call:?}");
    }
    assert_eq!(gateway.rewinds(), Rewinds::default());
    worker.count_rewind(300, 4);
    worker.count_rewind(200, 0);
    assert_eq!(gateway.rewinds(), Rewinds { count: 2, us: 500, pages: 4 });
}

#[test]
fn a_frame_waits_for_room_and_is_announced() {
    use crate::spsc::{Sleep, Wake};
    let (mut gateway, mut worker) = ends();
    let largest = vec![7; gateway.largest_payload_bytes()];
    assert!(gateway.push(FrameKind::RequestBody, TAG, &[&largest]).unwrap());
    assert!(!gateway.push(FrameKind::Cancel, TAG, &[]).unwrap(), "it is full");
    assert_eq!(worker.prepare_sleep(), Ok(Sleep::MayBlock));
    assert_eq!(gateway.publish(), Wake::Needed);
    assert_eq!(gateway.prepare_wait(1), Ok(Sleep::MayBlock));
    let mut payload = Vec::new();
    assert!(worker.receive(&mut payload).unwrap().is_some());
    assert_eq!(payload, largest);
    assert_eq!(gateway.free_bytes(), Ok(0), "not before the release");
    assert_eq!(worker.release(), Wake::Needed);
    assert_eq!(gateway.free_bytes(), Ok(largest.len()));
}
