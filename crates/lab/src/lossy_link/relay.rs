//! The relay of a [`LossyLink`](super::LossyLink): holds packets for a while, loses some, returns the others.
//!
//! One thread. A datagram from the device's end is one IPv4 packet, and one to it as well. Invariants: at most
//! [`QUEUE`] packets are under way, and none overtakes another.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// More than any window of the experiment, like a router with a large buffer.
const QUEUE: usize = 10_000;
/// The relay looks for its end at least this often.
const PAUSE: Duration = Duration::from_millis(20);
/// Longer than any packet.
const PACKET_BYTES: usize = 65_536;
/// Probabilities are multiples of its inverse.
const CERTAIN: u64 = 1 << 32;

/// What happens to packets.
#[derive(Debug)]
pub(super) struct Fate {
    delay: Duration,
    lost: AtomicU64,
    has_ended: AtomicBool,
}

impl Fate {
    pub(super) fn new(delay: Duration) -> Self {
        Self { delay, lost: AtomicU64::new(0), has_ended: AtomicBool::new(false) }
    }

    pub(super) fn lose(&self, share: f64) {
        self.lost.store((share * CERTAIN as f64) as u64, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

/// Packets under way, the first of which is due first, and which of them are lost.
struct Packets {
    queue: VecDeque<(Instant, Vec<u8>)>,
    random: u64,
}

impl Packets {
    fn new() -> Self {
        Self { queue: VecDeque::new(), random: 0x9e37_79b9_7f4a_7c15 }
    }

    fn add(&mut self, packet: &[u8], now: Instant, fate: &Fate) {
        let is_lost = self.draw() % CERTAIN < fate.lost.load(Ordering::Relaxed);
        if is_lost || self.queue.len() == QUEUE {
            return;
        }
        let mut packet = packet.to_vec();
        if exchange_addresses(&mut packet) {
            self.queue.push_back((now + fate.delay, packet));
        }
    }

    fn next_due(&mut self, now: Instant) -> Option<Vec<u8>> {
        let is_due = self.queue.front().is_some_and(|(due, _)| *due <= now);
        is_due.then(|| self.queue.pop_front())?.map(|(_, packet)| packet)
    }

    fn until_next(&self, now: Instant) -> Duration {
        let due = self.queue.front().map_or(PAUSE, |(due, _)| due.saturating_duration_since(now));
        // No time at all would wait without end (std::net::UdpSocket::set_read_timeout).
        due.clamp(Duration::from_micros(1), PAUSE)
    }

    /// xorshift64 (Marsaglia 2003): the same losses each time.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 16
    }
}

/// Returns packets until the link has ended.
pub(super) fn run(socket: &UdpSocket, fate: &Fate) {
    let mut packets = Packets::new();
    let mut buffer = vec![0; PACKET_BYTES];
    let mut device: Option<SocketAddr> = None;
    while !fate.has_ended.load(Ordering::Relaxed) {
        if socket.set_read_timeout(Some(packets.until_next(Instant::now()))).is_err() {
            return;
        }
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                device = Some(from);
                packets.add(&buffer[..length], Instant::now(), fate);
            }
            // A device that is gone refuses packets (ECONNREFUSED): the link is about to end.
            Err(error) => debug_assert_ne!(error.kind(), ErrorKind::InvalidInput),
        }
        while let (Some(device), Some(packet)) = (device, packets.next_due(Instant::now())) {
            // A device whose queue is full loses the packet.
            let _ = socket.send_to(&packet, device);
        }
    }
}

/// Exchanges source and destination of an IPv4 packet, and reports whether it is one. The checksums stay
/// right, since they are sums of both addresses (RFC 1071).
fn exchange_addresses(packet: &mut [u8]) -> bool {
    const ADDRESSES: std::ops::Range<usize> = 12..20;
    let is_ipv4 = packet.first().is_some_and(|first| first >> 4 == 4);
    let Some(addresses) = packet.get_mut(ADDRESSES).filter(|_| is_ipv4) else { return false };
    let (source, destination) = addresses.split_at_mut(4);
    source.swap_with_slice(destination);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(25);

    fn packet(number: u8) -> Vec<u8> {
        let mut packet = vec![0; 21];
        packet[0] = 0x45;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20] = number;
        packet
    }

    #[test]
    fn a_packet_returns_after_the_delay_from_its_destination() {
        let (mut packets, fate, now) = (Packets::new(), Fate::new(DELAY), Instant::now());
        packets.add(&packet(7), now, &fate);
        assert_eq!(packets.next_due(now + DELAY / 2), None);
        let returned = packets.next_due(now + DELAY).expect("it is due");
        assert_eq!(returned[12..], [10, 0, 0, 2, 10, 0, 0, 1, 7]);
    }

    #[test]
    fn the_share_of_lost_packets_is_the_one_that_was_set() {
        let (mut packets, fate, now) = (Packets::new(), Fate::new(DELAY), Instant::now());
        fate.lose(0.05);
        let mut returned = 0;
        for _ in 0..20_000 {
            packets.add(&packet(1), now, &fate);
            returned += usize::from(packets.next_due(now + DELAY).is_some());
        }
        assert!((18_800..19_200).contains(&returned), "{returned} of 20,000");
    }

    #[test]
    fn the_queue_is_bounded_and_keeps_its_order() {
        let (mut packets, fate, now) = (Packets::new(), Fate::new(DELAY), Instant::now());
        (0..QUEUE + 5).for_each(|number| packets.add(&packet(number as u8), now, &fate));
        assert_eq!(packets.queue.len(), QUEUE);
        let order: Vec<u8> = packets.queue.iter().take(3).map(|(_, packet)| packet[20]).collect();
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn other_packets_than_ipv4_are_lost() {
        let mut packets = Packets::new();
        let (fate, now) = (Fate::new(DELAY), Instant::now());
        packets.add(&[0x60; 60], now, &fate);
        packets.add(&[0x45; 19], now, &fate);
        packets.add(&[], now, &fate);
        assert!(packets.queue.is_empty());
    }
}
