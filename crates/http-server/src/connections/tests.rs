//! Limits, and which connection closes for another.

use super::*;
use outboard_reactor::run;
use std::net::{Ipv4Addr, SocketAddr};

fn limits(connections: u32, per_ip: u32, streams: u32) -> Limits {
    let text = format!(
        "[app.a]\nroot = \"/\"\n[limits]\nconnections = {connections}\n\
         connections_per_ip = {per_ip}\nhttp2_streams = {streams}\n"
    );
    outboard_config::Config::parse(&text, std::path::Path::new("/outboard.toml")).unwrap().limits
}

const A: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
const B: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));

fn in_a_task(work: impl FnOnce() + 'static) {
    run(async { work() }).unwrap();
}

#[test]
fn the_longest_idle_connection_closes_for_another() {
    in_a_task(|| {
        let limits = limits(4, 0, 8);
        let all = Connections::new(None);
        let open = || all.open(Kind::Connection, A, &limits).unwrap();
        let entries: Vec<Entry> = (0..4).map(|_| open()).collect();
        assert!(all.is_full(&limits));
        entries[2].set_idle();
        entries[0].set_idle();
        entries[1].set_idle();
        // Its request has come meanwhile.
        entries[2].set_busy();
        all.make_room();
        let closing: Vec<bool> = entries.iter().map(Entry::must_close).collect();
        assert_eq!(closing, [true, false, false, false]);
        // One that leaves is enough for now.
        all.make_room();
        assert!(!entries[1].must_close());
        drop(entries);
        assert_eq!((all.connections(), all.table.borrow().by_address.len()), (0, 0));
    });
}

#[test]
fn a_busy_connection_is_never_closed_for_another() {
    in_a_task(|| {
        let limits = limits(2, 0, 8);
        let all = Connections::new(None);
        let entries = [A, A].map(|address| all.open(Kind::Connection, address, &limits).unwrap());
        all.make_room();
        assert!(all.is_full(&limits) && entries.iter().all(|entry| !entry.must_close()));
    });
}

#[test]
fn an_address_makes_room_only_for_itself() {
    in_a_task(|| {
        let limits = limits(100, 2, 8);
        let all = Connections::new(None);
        let open = |address| all.open(Kind::Connection, address, &limits);
        let (other, first, _second) = (open(B).unwrap(), open(A).unwrap(), open(A).unwrap());
        other.set_idle();
        assert!(open(A).is_none(), "both of its own are busy");
        first.set_idle();
        let _third = open(A).unwrap();
        assert!(first.must_close() && !other.must_close());
        assert!(all.open(Kind::Stream, A, &limits).is_none(), "streams count as well");
        // Without an address there is no such limit.
        let unix: Vec<Entry> = (0..9).map(|_| open(None).unwrap()).collect();
        assert_eq!((unix.len(), all.connections()), (9, 13));
    });
}

#[test]
fn streams_have_their_own_limit_and_are_never_idle() {
    in_a_task(|| {
        let limits = limits(100, 0, 2);
        let all = Connections::new(None);
        let open = || all.open(Kind::Stream, A, &limits);
        let streams = [open().unwrap(), open().unwrap()];
        assert!(open().is_none());
        assert_eq!((all.streams(), all.connections()), (2, 0));
        streams[0].set_idle();
        all.make_room();
        assert!(!streams[0].must_close());
        drop(streams);
        assert!(open().is_some());
    });
}

#[test]
fn half_of_the_descriptors_are_left_for_requests() {
    let limits = limits(1000, 0, 8);
    assert_eq!(Connections::new(Some(600)).max(&limits), 300);
    assert_eq!(Connections::new(Some(1 << 20)).max(&limits), 1000);
}

#[test]
fn a_network_of_64_bits_counts_as_one_client() {
    let counted = |address: &str| {
        let address: SocketAddr = format!("{address}:1").parse().unwrap();
        counted_as(Peer::Tcp(address)).unwrap().to_string()
    };
    assert_eq!(counted("[2001:db8:1:2:3:4:5:6]"), "2001:db8:1:2::");
    assert_eq!(counted("[::ffff:192.0.2.1]"), "192.0.2.1");
    assert_eq!(counted("192.0.2.1"), "192.0.2.1");
    assert_eq!(counted_as(Peer::Unix), None);
}
