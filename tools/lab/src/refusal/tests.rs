//! Each refusal is provoked by numbers and, if possible, by a real client and server.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;

use super::*;
use crate::generator::{Task, run_count};
use crate::load::{Failure, Failures, Latency, Load};
use crate::request_spec::RequestSpec;

/// A flawless second on two cores with 10 connections.
fn sound() -> Slice {
    let latency = Latency { max_us: 2_000.0, mean_us: Some(1_000.0), ..Latency::default() };
    let load = Load {
        responses: 10_000,
        seconds: 1.0,
        latency,
        connections: 10,
        client_us: 300_000,
        ..Load::default()
    };
    Slice { load, cpu_us: 900_000, machine_us: 2_000_000, noise_limit: 0.1, ..Slice::default() }
}

fn series(slices: Vec<Slice>) -> Series {
    Series { stack: "stack".into(), slices }
}

#[test]
fn a_flawless_slice_is_not_refused() {
    assert_eq!(Refusal::of(&sound()), None);
}

#[test]
fn a_saturated_client_is_fine_if_the_stack_is_saturated() {
    let mut slice = sound();
    slice.load.client_us = 950_000;
    assert_eq!(Refusal::of(&slice), Some(Refusal::ClientSaturated { busy: 0.95 }));
    slice.cpu_us = 1_000_000;
    assert_eq!(Refusal::of(&slice), None);
}

#[test]
fn a_saturated_client_forbids_ranking_by_rate_only() {
    let refusal = Refusal::ClientSaturated { busy: 1.0 };
    assert_eq!(Metric::ALL.map(|metric| refusal.forbids(metric)), [false, true, true]);
    let noisy = Refusal::Noisy { taken: 0.5, by: "others".into() };
    assert_eq!(Metric::ALL.map(|metric| noisy.forbids(metric)), [true, true, true]);
}

#[test]
fn inconsistent_counts_are_refused() {
    let mut slice = sound();
    slice.load.latency.mean_us = Some(1_500.0);
    assert!(matches!(Refusal::of(&slice), Some(Refusal::Little { connections: 10, .. })));
    slice.load.latency.mean_us = Some(300.0);
    assert!(matches!(Refusal::of(&slice), Some(Refusal::Little { .. })));
}

#[test]
fn idle_connections_at_the_end_are_accepted() {
    let mut slice = sound();
    slice.load.latency = Latency { max_us: 900_000.0, mean_us: Some(500.0), ..Latency::default() };
    assert_eq!(Refusal::of(&slice), None);
}

#[test]
fn a_noisy_slice_names_the_source_of_the_noise() {
    let by = |slice: &Slice| match Refusal::of(slice) {
        Some(Refusal::Noisy { by, .. }) => by,
        other => panic!("{other:?}"),
    };
    assert_eq!(by(&Slice { stolen: 0.2, noise: 0.2, ..sound() }), "the hypervisor");
    assert_eq!(by(&Slice { noise: 0.2, ..sound() }), "other processes");
    assert_eq!(by(&Slice { stalled: 0.2, ..sound() }), "waiting for memory");
}

#[test]
fn noise_in_many_slices_is_refused() {
    let noisy = || Slice { noise: 0.5, ..sound() };
    let few = series(vec![sound(), sound(), sound(), noisy()]);
    assert_eq!(Refusal::of_series(&few), None);
    let many = series(vec![sound(), noisy(), sound(), noisy()]);
    assert!(matches!(Refusal::of_series(&many), Some(Refusal::Noisy { .. })));
}

#[test]
fn one_wrong_body_or_one_missing_port_is_too_many() {
    for failures in [Failure::Body, Failure::Ports].map(|class| Failures::from([(class, 1)])) {
        let mut slice = sound();
        slice.load.failures = failures;
        let series = series([vec![slice], vec![sound(); 11]].concat());
        assert!(Refusal::of_series(&series).is_some(), "{failures:?}");
    }
}

#[test]
fn failures_are_not_compared_with_responses() {
    let mut slice = sound();
    slice.load.failures = [(Failure::Status, 200)].into();
    assert_eq!(Refusal::of(&slice), Some(Refusal::Failing { failed: 200, sent: 10_000 }));
}

/// A server that answers each request with the next of these bodies, over one connection.
fn answering(bodies: [&'static str; 4]) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback binds");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        // The generator first probes the address.
        let _ = listener.accept().expect("the generator looks");
        let (stream, _) = listener.accept().expect("the generator connects");
        let mut lines = BufReader::new(stream.try_clone().expect("a descriptor is left")).lines();
        for body in bodies {
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let length = body.len();
            let _ = write!(&stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        }
    });
    address
}

#[test]
fn a_response_that_changes_during_the_load_is_rejected() {
    let refusal_of = |bodies| {
        let request = RequestSpec::get("/").expecting_body(b"right");
        let task = Task::new(answering(bodies), &request, 1);
        let load = run_count(&task, 4).expect("it answers").load;
        bodies_of(load)
    };
    fn bodies_of(load: Load) -> Option<Refusal> {
        bodies(&Slice { load, ..Slice::default() })
    }
    assert_eq!(refusal_of(["right", "right", "right", "right"]), None);
    let wrong = Some(Refusal::BodiesDiffer { responses: 1 });
    assert_eq!(refusal_of(["right", "wrong", "right", "right"]), wrong, "same length");
    assert_eq!(refusal_of(["right", "right", "longer", "right"]), wrong, "other length");
}
