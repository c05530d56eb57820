//! Abuse of QUIC (RFC 9000): datagrams of connections that do not come about, and of a hostile network.

mod spoofed;

use super::http3::client::{Client, Network, settings};
use super::http3::{DATA, GET, POST, frame, request};
use super::*;
use crate::abused::{Abused, LARGE};
use quinn_proto::{Dir, TransportConfig};
use spoofed::Sender;

/// Longer than the queues of both threads are.
const INITIALS: usize = 2_000;
/// Addresses that they come from.
const SOURCES: u8 = 200;
/// Of the other app's client, and of the request for the number.
const OWN_CONNECTIONS: u64 = 2;
/// RFC 9000 14.1.
const INITIAL_BYTES: usize = 1_200;

/// The first datagram of a client.
fn initial(site: &Abused) -> Vec<u8> {
    let mut client = Client::begin(site, settings(site, TransportConfig::default()));
    client.outgoing().swap_remove(0)
}

/// Fetches this by a new connection.
#[track_caller]
fn is_served(site: &Abused) {
    let mut client = Client::connect(site);
    is_served_to(&mut client, |_| ());
}

#[track_caller]
fn is_served_to(client: &mut Client, each: impl FnMut(&mut Client)) {
    let stream = client.send(Dir::Bi, &request(GET, "/hello.php")).expect("it is connected");
    let response = client.response(stream, each).expect("there is a response");
    assert!(response.ends_with(b"Hello, world\n"), "{response:?}");
}

/// Receives until the server has given up all connections but that of the other app, and no datagram
/// can follow; then RFC 9000 8.1 holds for each address.
#[track_caller]
fn have_little(site: &Abused, senders: &mut [Sender]) {
    eventually_within(RECOVERED_WITHIN, "the handshakes have ended", || {
        senders.iter_mut().for_each(Sender::receive);
        let open = site.open_connections();
        if open <= OWN_CONNECTIONS { Ok(()) } else { Err(open) }
    });
    senders.iter_mut().for_each(Sender::receive);
    for sender in &*senders {
        assert!(sender.received_bytes <= 3 * sender.sent_bytes, "{sender:?}");
    }
    let sum = |of: fn(&Sender) -> usize| senders.iter().map(of).sum::<usize>();
    println!(
        "{} addresses: {} bytes sent, {} received, {} Retry",
        senders.len(),
        sum(|sender| sender.sent_bytes),
        sum(|sender| sender.received_bytes),
        sum(|sender| sender.retries)
    );
}

/// Addresses that a client only pretends to have.
#[test]
fn first_datagrams_from_many_addresses_are_not_amplified() {
    let site = Abused::start();
    let mut senders: Vec<Sender> = (0..SOURCES).map(|at| Sender::from([127, 1, 0, at])).collect();
    let initials: Vec<Vec<u8>> = (0..INITIALS).map(|_| initial(&site)).collect();
    for (number, datagram) in initials.iter().enumerate() {
        senders[number % usize::from(SOURCES)].send(&site, datagram);
    }
    is_served(&site);
    println!("QUIC Initial: {} KiB more", site.more_bytes() >> 10);
    have_little(&site, &mut senders);
    // Most of them have to prove their address (RFC 9000 8.1.2).
    let retries: usize = senders.iter().map(|sender| sender.retries).sum();
    assert!(retries > INITIALS / 10, "{retries}");
    site.ends_unharmed("QUIC Initial, many");
}

#[test]
fn first_datagrams_from_one_address_are_not_amplified() {
    let site = Abused::start();
    let mut senders = [Sender::from([127, 1, 0, 1]), Sender::from([127, 1, 0, 2])];
    let same = initial(&site);
    for _ in 0..INITIALS {
        senders[0].send(&site, &initial(&site));
        senders[1].send(&site, &same);
    }
    is_served(&site);
    have_little(&site, &mut senders);
    site.ends_unharmed("QUIC Initial, one");
}

/// They have an address, return the token of Retry, and then say no more.
#[test]
fn handshakes_that_stop_are_bounded() {
    let site = Abused::start();
    let settings = settings(&site, TransportConfig::default());
    let mut most_open = 0;
    for number in 0..INITIALS {
        let mut client = Client::begin(&site, settings.clone());
        (0..2).for_each(|_| client.turn());
        if number % 50 == 0 {
            let open = site.open_connections();
            most_open = most_open.max(open);
        }
    }
    is_served(&site);
    println!("QUIC handshakes: {most_open} open at most, {} KiB more", site.more_bytes() >> 10);
    have_little(&site, &mut []);
    site.ends_unharmed("QUIC handshakes");
}

#[test]
fn datagrams_of_no_connection_are_not_amplified() {
    let site = Abused::start();
    let noise = |length: usize| -> Vec<u8> {
        (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    };
    let with = |first: &[u8], length: usize| [first, &noise(length - first.len())].concat();
    let mut broken = initial(&site);
    broken[600..].reverse();
    let cut = initial(&site)[..INITIAL_BYTES - 1].to_vec();
    for (name, datagram, most_bytes) in [
        ("noise", with(&[0x00], 500), 0),
        ("one byte", vec![0x40], 0),
        ("a long header of 7 bytes", with(&[0xc0, 0, 0, 0, 1], 7), 0),
        ("a version of nobody", with(&[0xc0, 0xba, 0xba, 0xba, 0xba, 8], INITIAL_BYTES), 100),
        ("the same in less", with(&[0xc0, 0xba, 0xba, 0xba, 0xba, 8], 100), 0),
        ("version negotiation", with(&[0xc0, 0, 0, 0, 0, 8], INITIAL_BYTES), 0),
        ("a broken Initial", broken, 0),
        ("an Initial of less", cut, 0),
        ("0-RTT", with(&[0xd0, 0, 0, 0, 1, 8], INITIAL_BYTES), 0),
        ("Handshake", with(&[0xe0, 0, 0, 0, 1, 10, 0, 1], INITIAL_BYTES), 0),
        ("Retry", with(&[0xf0, 0, 0, 0, 1, 8], INITIAL_BYTES), 0),
        // A stateless reset is shorter than what it responds to (RFC 9000 10.3.3).
        ("a short header", with(&[0x40, 0, 0], 100), 99),
        ("one for the other thread", with(&[0x40, 0, 1], 100), 99),
        ("one for no thread", with(&[0x40, 0xff, 0xff], 100), 99),
        ("a short one", with(&[0x40, 0, 0], 21), 20),
    ] {
        let mut sender = Sender::from([127, 1, 0, 1]);
        (0..500).for_each(|_| sender.send(&site, &datagram));
        is_served(&site);
        sender.receive();
        assert!(sender.largest_bytes <= most_bytes, "{name}: {sender:?}");
        assert!(sender.received_bytes <= sender.sent_bytes, "{name}: {sender:?}");
    }
    site.ends_unharmed("QUIC garbage");
}

/// A network that cuts, doubles, reorders and forges datagrams.
#[test]
fn a_hostile_network_does_not_end_a_connection() {
    let site = Abused::start();
    let hostile: Network = |datagrams| {
        let hostile = |datagram: Vec<u8>| {
            let cut = datagram[..datagram.len() / 2].to_vec();
            // The connection ID and a token of the sender's choice (RFC 9000 10.3).
            let mut forged = datagram.clone();
            forged.iter_mut().skip(20).for_each(|byte| *byte ^= 0x55);
            [forged, datagram.clone(), cut, datagram]
        };
        datagrams.into_iter().rev().flat_map(hostile).collect()
    };
    let mut client = Client::begin(&site, settings(&site, TransportConfig::default()));
    client.network = hostile;
    for _ in 0..20 {
        is_served_to(&mut client, |_| ());
    }
    let stream = client.send(Dir::Bi, &request(GET, "/large.txt")).expect("it is connected");
    assert!(client.response(stream, |_| ()).expect("there is a response").len() > LARGE);
    site.ends_unharmed("QUIC hostile network");
}

/// RFC 9000 9: each new port has to be validated, and the client is served meanwhile. It does not know of the
/// change, as behind a NAT that has forgotten an idle connection.
#[test]
fn a_client_that_changes_its_port_constantly_is_served() {
    let site = Abused::start();
    let mut client = Client::connect(&site);
    // Not before the handshake is confirmed.
    is_served_to(&mut client, |_| ());
    for _ in 0..100 {
        client.migrate();
        is_served_to(&mut client, |_| ());
    }
    let mut turns = 0;
    let stream = client.send(Dir::Bi, &request(GET, "/large.txt")).expect("it is connected");
    let response = client.response(stream, |client| {
        turns += 1;
        if turns % 10 == 0 {
            client.migrate();
        }
    });
    assert!(response.expect("there is a response").len() > LARGE);
    println!("{} changes of the port in a response", turns / 10);
    site.ends_unharmed("QUIC migrations");
}

/// The same for what the client sends: its data reaches the thread that has the connection from both.
#[test]
fn a_client_that_changes_its_port_in_an_upload_is_served() {
    const PIECE: usize = 32 << 10;
    const PIECES: usize = 64;
    let site = Abused::start();
    let mut client = Client::connect(&site);
    // Not before the handshake is confirmed.
    is_served_to(&mut client, |_| ());
    for _ in 0..3 {
        let stream = client.open(Dir::Bi).expect("it is connected");
        client.write(stream, &request(POST, "/digest.php"));
        let body: Vec<u8> = (0..PIECE * PIECES).map(|at| (at / 1_000) as u8).collect();
        for piece in body.chunks(PIECE) {
            client.write(stream, &frame(DATA, piece));
            client.turn();
            client.migrate();
        }
        client.finish(stream);
        let response = client.response(stream, |_| ()).expect("there is a response");
        let expected = format!("{} {}\n", body.len(), crc32(&body));
        assert!(response.ends_with(expected.as_bytes()), "{}", String::from_utf8_lossy(&response));
    }
    site.ends_unharmed("QUIC migrations of uploads");
}

/// As PHP computes it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}

/// Early data can be replayed (RFC 8446 8): it is accepted only if a listener has `early_data`.
#[test]
fn early_data_is_refused() {
    let site = Abused::start();
    let settings = settings(&site, TransportConfig::default());
    for is_resumed in [false, true] {
        let mut client = Client::begin(&site, settings.clone());
        assert!(!client.connection.has_0rtt());
        is_served_to(&mut client, |_| ());
        assert!(!client.connection.accepted_0rtt(), "{is_resumed}");
    }
    site.ends_unharmed("QUIC early data");
}
