//! Tests of exchanges without a worker.

use super::response_data::MAX_REUSED_BYTES;
use super::*;
use outboard_log::Reason;
use outboard_ring::request::{FIELD_COUNT, Fixed, RequestParts, encode};

/// Runs a test with an exchange that has a buffer of 100 bytes.
fn with_exchange(test: impl FnOnce(Exchange) + 'static) {
    let run = async { test(Exchange::new(Vec::new(), RequestBody::empty(), 1, 0, 100)) };
    outboard_reactor::run(run).unwrap();
}

#[test]
fn a_response_is_taken_in_parts() {
    with_exchange(|exchange| {
        assert!(exchange.take().is_none());
        exchange.add_frame(FrameKind::Interim, b"103").unwrap();
        exchange.add_frame(FrameKind::Head, b"200").unwrap();
        exchange.add_frame(FrameKind::Body, b"a").unwrap();
        let first = exchange.take().unwrap();
        assert_eq!((first.interim, first.head), (vec![b"103".to_vec()], b"200".to_vec()));
        assert_eq!((&first.body[..], first.flush, first.end), (&b"a"[..], false, None));
        assert!(exchange.take().is_none());
        exchange.add_frame(FrameKind::Body, b"b").unwrap();
        exchange.add_frame(FrameKind::Flush, b"").unwrap();
        exchange.finish(End::Complete);
        let second = exchange.take().unwrap();
        assert_eq!((&second.body[..], second.flush), (&b"b"[..], true));
        assert_eq!((second.head, second.end), (Vec::new(), Some(End::Complete)));
    });
}

#[test]
fn nothing_is_added_after_the_first_end() {
    with_exchange(|exchange| {
        exchange.finish(End::Failed(Reason::Deadline));
        exchange.finish(End::Complete);
        exchange.add_frame(FrameKind::Body, b"late").unwrap();
        assert!(exchange.has_ended());
        let data = exchange.take().unwrap();
        assert_eq!((data.body.len(), data.end), (0, Some(End::Failed(Reason::Deadline))));
        assert!(exchange.take().is_none());
    });
}

#[test]
fn an_abandoned_exchange_drops_its_response() {
    with_exchange(|exchange| {
        exchange.add_frame(FrameKind::Body, &[b'x'; 200]).unwrap();
        assert!(exchange.is_full(1));
        exchange.abandon();
        assert!(exchange.abandoned.get() && !exchange.is_full(1));
        exchange.add_frame(FrameKind::Body, b"late").unwrap();
        assert!(exchange.take().is_none());
    });
}

#[test]
fn memory_and_disk_fill_the_buffer() {
    with_exchange(|exchange| {
        exchange.add_frame(FrameKind::Body, &[b'x'; 60]).unwrap();
        assert!(!exchange.is_full(1));
        exchange.set_spooled(40);
        assert!(exchange.is_full(1) && !exchange.is_full(2));
        exchange.set_spooled(140);
        assert!(exchange.is_full(2));
        exchange.set_spooled(0);
        assert!(!exchange.is_full(1));
    });
}

#[test]
fn the_memory_of_a_response_is_counted_until_it_is_dropped() {
    with_exchange(|exchange| {
        let account = Account::detached();
        let exchange = exchange.counted_in(&account);
        exchange.add_frame(FrameKind::Head, b"12345").unwrap();
        exchange.add_frame(FrameKind::Body, b"1234567890").unwrap();
        assert_eq!(account.held_bytes(), 15);
        let mut first = exchange.take().unwrap();
        exchange.add_frame(FrameKind::Body, b"abc").unwrap();
        first.append(exchange.take().unwrap());
        assert_eq!((first.body.len(), account.held_bytes()), (13, 18));
        drop(first);
        assert_eq!(account.held_bytes(), 0);
    });
}

#[test]
fn frames_that_are_dropped_are_not_counted() {
    with_exchange(|exchange| {
        let account = Account::detached();
        let exchange = exchange.counted_in(&account);
        for _ in 0..100 {
            for kind in [FrameKind::Head, FrameKind::Interim, FrameKind::Trailers] {
                exchange.add_frame(kind, b"12345").unwrap();
            }
        }
        assert_eq!(account.held_bytes(), 10);
        assert_eq!(exchange.take().unwrap().trailers, b"12345");
    });
}

#[test]
fn repeated_heads_and_late_interim_responses_are_dropped() {
    with_exchange(|exchange| {
        for _ in 0..100 {
            exchange.add_frame(FrameKind::Interim, b"103").unwrap();
        }
        exchange.add_frame(FrameKind::Head, b"first").unwrap();
        exchange.add_frame(FrameKind::Head, b"second").unwrap();
        exchange.add_frame(FrameKind::Interim, b"late").unwrap();
        let data = exchange.take().unwrap();
        assert_eq!(data.interim.len(), MAX_INTERIM_RESPONSES);
        assert_eq!(data.head, b"first");
    });
}

#[test]
fn stored_log_lines_are_limited() {
    with_exchange(|exchange| {
        exchange.record_log_line("first");
        for _ in 0..100 {
            exchange.record_log_line(&"x".repeat(1_000));
        }
        let lines = exchange.log_lines();
        assert!(lines.starts_with("first\nxxx") && lines.ends_with('\n'));
        assert!((30_000..=MAX_LOG_BYTES + 1).contains(&lines.len()), "{}", lines.len());
    });
}

#[test]
fn the_label_is_method_and_target() {
    let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
    fields[Field::Method as usize] = b"POST";
    fields[Field::Uri as usize] = b"/a?b";
    let none = std::iter::empty;
    let (fixed, headers, params) = (Fixed::default(), none(), none());
    let mut frame = Vec::new();
    encode(RequestParts { fixed, fields, headers, params }, &mut frame);
    with_exchange(move |exchange| {
        assert_eq!(exchange.label(), "", "an invalid frame has no label");
        assert_eq!(Exchange { frame, ..exchange }.label(), "POST /a?b");
    });
}

#[test]
fn an_exchange_that_is_replaced_lends_its_memory() {
    with_exchange(|exchange| {
        exchange.add_frame(FrameKind::Head, b"head").unwrap();
        exchange.add_frame(FrameKind::Body, b"body").unwrap();
        let mut data = exchange.take().unwrap();
        let addresses = [data.head.as_ptr(), data.body.as_ptr()];
        data.clear();
        assert!(data.is_empty() && data.held.is_none());
        let new = |id| Exchange::new(vec![1, 2], RequestBody::empty(), id, 0, 10);
        let earlier = Rc::new(new(1));
        let address = Rc::as_ptr(&earlier);
        let later = new(2).received_in(data).replacing(Some(earlier));
        assert_eq!((Rc::as_ptr(&later), later.request_id), (address, 2));
        later.add_frame(FrameKind::Head, b"HEAD").unwrap();
        later.add_frame(FrameKind::Body, b"BODY").unwrap();
        let data = later.take().unwrap();
        assert_eq!([data.head.as_ptr(), data.body.as_ptr()], addresses);
        // A worker may still refer to it.
        let worker = later.clone();
        let third = new(3).replacing(Some(later.clone()));
        assert!(!Rc::ptr_eq(&third, &worker));
        assert_eq!((worker.request_id, third.request_id), (2, 3));
    });
}

#[test]
fn a_released_exchange_holds_nothing_of_its_request() {
    with_exchange(|_| {
        let account = Account::detached();
        let body = RequestBody::whole(vec![0; 10]).counted_in(account.hold(10));
        let exchange = Exchange::new(vec![1, 2], body, 1, 0, 10).counted_in(&account);
        exchange.add_frame(FrameKind::Body, b"body").unwrap();
        exchange.record_log_line("line");
        let exchange = Rc::new(exchange);
        // A worker may still refer to it.
        let worker = exchange.clone();
        assert!(exchange.release().is_none());
        assert_eq!(account.held_bytes(), 14);
        let (exchange, frame) = worker.release().unwrap();
        assert_eq!((account.held_bytes(), frame.len()), (0, 0));
        assert!(frame.capacity() >= 2 && exchange.log_lines().is_empty());
    });
}

#[test]
fn large_buffers_are_not_reused() {
    let large = vec![0; 2 * MAX_REUSED_BYTES];
    let mut data = ResponseData { body: large, head: vec![0; 100], ..ResponseData::default() };
    data.clear();
    assert_eq!(data.body.capacity(), 0);
    assert!(data.head.capacity() >= 100);
}

#[test]
fn a_head_without_a_status_violates_the_protocol() {
    with_exchange(|exchange| {
        assert!(exchange.add_frame(FrameKind::Head, b"").is_err());
    });
}

#[test]
fn a_whole_response_is_its_head_and_its_body() {
    with_exchange(|exchange| {
        exchange.add_whole(b"head", b"body").unwrap();
        exchange.add_whole(b"another", b"more").unwrap();
        let arrived = exchange.take().unwrap();
        assert_eq!((&arrived.head[..], &arrived.body[..]), (&b"head"[..], &b"bodymore"[..]));
        assert!(exchange.add_whole(b"", b"body").is_err(), "a head has a status");
        exchange.complete(true);
        exchange.add_whole(b"late", b"late").unwrap();
        assert!(exchange.take().unwrap().head.is_empty(), "nothing is added after the end");
    });
}
