//! Limits, and which connection closes for another.

use super::*;
use outboard_reactor::testing::in_loop;
use outboard_reactor::{run, yield_now};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

fn limits(connections: u32, per_ip: u32, streams: u32) -> Limits {
    let text = format!(
        "[app.a]\nroot = \"/\"\n[limits]\nconnections = {connections}\n\
         connections_per_ip = {per_ip}\nhttp2_streams = {streams}\n"
    );
    outboard_config::Config::parse(&text, std::path::Path::new("/outboard.toml")).unwrap().limits
}

const A: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
const B: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));

/// The connections of the only shard.
fn alone() -> Rc<Connections> {
    Connections::new(&Census::new(1, None))
}

fn make_room(connections: &Connections) {
    connections.make_room(&Context::from_waker(Waker::noop()));
}

fn in_a_task(work: impl FnOnce() + 'static) {
    run(async { work() }).unwrap();
}

#[test]
fn the_longest_idle_connection_closes_for_another() {
    in_a_task(|| {
        let limits = limits(4, 0, 8);
        let all = alone();
        let open = || all.open(Kind::Connection, A, &limits).unwrap();
        let entries: Vec<Entry> = (0..4).map(|_| open()).collect();
        assert!(all.is_full(&limits));
        entries[2].set_idle();
        entries[0].set_idle();
        entries[1].set_idle();
        // Its request has come meanwhile.
        entries[2].set_busy();
        make_room(&all);
        let closing: Vec<bool> = entries.iter().map(Entry::must_close).collect();
        assert_eq!(closing, [true, false, false, false]);
        // One that leaves is enough for now.
        make_room(&all);
        assert!(!entries[1].must_close());
        drop(entries);
        assert_eq!((all.connections(), all.census.known_addresses()), (0, 0));
    });
}

#[test]
fn a_busy_connection_is_never_closed_for_another() {
    in_a_task(|| {
        let limits = limits(2, 0, 8);
        let all = alone();
        let entries = [A, A].map(|address| all.open(Kind::Connection, address, &limits).unwrap());
        make_room(&all);
        assert!(all.is_full(&limits) && entries.iter().all(|entry| !entry.must_close()));
    });
}

#[test]
fn an_address_makes_room_only_for_itself() {
    in_a_task(|| {
        let limits = limits(100, 2, 8);
        let all = alone();
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
        let all = alone();
        let open = || all.open(Kind::Stream, A, &limits);
        let streams = [open().unwrap(), open().unwrap()];
        assert!(open().is_none());
        assert_eq!((all.streams(), all.connections()), (2, 0));
        streams[0].set_idle();
        make_room(&all);
        assert!(!streams[0].must_close());
        drop(streams);
        assert!(open().is_some());
    });
}

/// Polls the tasks that serve other shards, and those that were asked.
async fn settle() {
    for _ in 0..4 {
        yield_now().await;
    }
}

/// An idle connection of a task of its own; whether it was asked to close.
fn idle_in_a_task(entry: Entry) -> Rc<Cell<bool>> {
    let was_asked = Rc::<Cell<bool>>::default();
    let asked = was_asked.clone();
    spawn(async move {
        asked.set(entry.while_idle(std::future::pending::<()>()).await.is_none());
    });
    was_asked
}

#[test]
fn a_shard_makes_room_for_another() {
    in_loop(async {
        let (census, limits) = (Census::new(3, None), limits(4, 0, 8));
        let shards = [(); 3].map(|()| Connections::new(&census));
        let open = |shard: usize| shards[shard].open(Kind::Connection, A, &limits).unwrap();
        let busy = open(0);
        let idle = [idle_in_a_task(open(2)), idle_in_a_task(open(1)), idle_in_a_task(open(0))];
        settle().await;
        assert!(shards.iter().all(|shard| shard.is_full(&limits) && shard.connections() == 4));
        // The published time of this shard is that of a connection that has left meanwhile.
        shards[1].publish(Some(0));
        let (before, asked) = (census.connections(), census.closing());
        assert_eq!((before, asked), (4, 0));
        make_room(&shards[0]);
        settle().await;
        assert_eq!(idle.iter().filter(|asked| asked.get()).count(), 1);
        assert_eq!((census.connections(), census.closing()), (3, 0));
        drop(busy);
    });
}

#[test]
fn who_waits_for_room_is_woken_when_a_shard_has_an_idle_connection() {
    in_loop(async {
        let (census, limits) = (Census::new(2, None), limits(1, 0, 8));
        let [one, other] = [(); 2].map(|()| Connections::new(&census));
        let entry = other.open(Kind::Connection, A, &limits).unwrap();
        let wakes = Arc::<Wakes>::default();
        let waker = Waker::from(wakes.clone());
        one.make_room(&Context::from_waker(&waker));
        settle().await;
        assert_eq!((wakes.0.load(Ordering::Relaxed), census.closing()), (0, 0));
        let asked = idle_in_a_task(entry);
        settle().await;
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "there is an idle one");
        one.make_room(&Context::from_waker(&waker));
        settle().await;
        assert!(asked.get() && !one.is_full(&limits));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 2, "it has closed");
    });
}

#[test]
fn an_address_makes_room_for_itself_on_another_shard() {
    in_loop(async {
        let (census, limits) = (Census::new(2, None), limits(100, 2, 8));
        let [one, other] = [(); 2].map(|()| Connections::new(&census));
        let open = |shard: &Rc<Connections>| shard.open(Kind::Connection, A, &limits);
        let (busy, idle) = (open(&other).unwrap(), open(&other).unwrap());
        assert!(open(&one).is_none(), "both are busy");
        let asked = idle_in_a_task(idle);
        settle().await;
        let third = open(&one).unwrap();
        assert!(open(&one).is_none(), "one makes room for one");
        settle().await;
        assert!(asked.get());
        drop((busy, third));
        assert_eq!(census.known_addresses(), 0);
    });
}

#[test]
fn shards_on_threads_stay_within_all_limits() {
    let (census, limits) = (Census::new(4, None), limits(1000, 20, 30));
    let shards = (0..4).map(|_| {
        let (census, limits) = (census.clone(), limits.clone());
        std::thread::spawn(move || {
            in_a_task(move || {
                let all = Connections::new(&census);
                for round in 0..500_u32 {
                    let address = IpAddr::from(Ipv4Addr::from_bits(round % 3));
                    let open = |kind| all.open(kind, Some(address), &limits);
                    let kinds = [Kind::Connection, Kind::Stream].repeat(10);
                    let entries: Vec<_> = kinds.into_iter().filter_map(open).collect();
                    assert!(census.streams().taken() <= 30);
                    // At most three addresses have entries at a time.
                    assert!(census.connections() <= 3 * 20);
                    drop(entries);
                }
            });
        })
    });
    let shards: Vec<_> = shards.collect();
    shards.into_iter().for_each(|shard| shard.join().unwrap());
    assert_eq!((census.connections(), census.closing(), census.known_addresses()), (0, 0, 0));
    assert_eq!(census.streams().taken(), 0);
}

/// Counts wake-ups.
#[derive(Debug, Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn half_of_the_descriptors_are_left_for_requests() {
    let limits = limits(1000, 0, 8);
    assert_eq!(Connections::new(&Census::new(1, Some(600))).max(&limits), 300);
    assert_eq!(Connections::new(&Census::new(1, Some(1 << 20))).max(&limits), 1000);
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
