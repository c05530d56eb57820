use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const ID: BucketId = [7; 16];

/// The server's buckets, as its script computes them.
#[derive(Default)]
struct Server(HashMap<BucketId, u64>);

impl Server {
    fn answer(&mut self, batch: &[Entry], now_ns: u64) -> Vec<Granted> {
        batch.iter().map(|entry| self.of_one(entry, now_ns)).collect()
    }

    fn of_one(&mut self, entry: &Entry, now_ns: u64) -> Granted {
        let full_at = self.0.entry(entry.id).or_default();
        let token_ns = i128::from(entry.rate.token_ns());
        let debt = i128::from((*full_at).max(now_ns) - now_ns) + token_ns * i128::from(entry.taken);
        let debt = debt.max(0);
        let room = (i128::from(entry.rate.full_ns()) - debt).max(0) / token_ns;
        let tokens = room.min(entry.asked.into());
        let debt = u64::try_from(debt + tokens * token_ns).unwrap();
        *full_at = now_ns + debt;
        Granted { tokens: u32::try_from(tokens).unwrap(), debt_ns: debt }
    }
}

/// A gateway whose batches are at the server for a while.
#[derive(Default)]
struct Gateway {
    buckets: SharedBuckets<u32>,
    /// The replies, and when they arrive.
    replies: Option<(u64, Vec<Granted>)>,
}

impl Gateway {
    /// A request; 1 if it is admitted at once.
    fn request(&mut self, rate: &Rate, now_ns: u64) -> u64 {
        match self.buckets.spend(ID, rate, 1, now_ns).unwrap() {
            Answer::Known(spending) => u64::from(spending.is_admitted),
            Answer::Ask => {
                self.buckets.ask(ID, rate, 1, 0, now_ns).unwrap();
                0
            }
        }
    }

    /// Exchanges batches; the requests that are admitted by it.
    fn exchange(&mut self, server: &mut Server, delay_ns: u64, now_ns: u64) -> u64 {
        let mut admitted = 0;
        if let Some((_, replies)) = self.replies.take_if(|(at_ns, _)| *at_ns <= now_ns) {
            let settled = self.buckets.settle(&replies, now_ns);
            admitted = settled.iter().filter(|(_, spending)| spending.is_admitted).count() as u64;
        }
        if self.replies.is_none() && self.buckets.is_changed() {
            let replies = server.answer(&self.buckets.batch(), now_ns);
            self.replies = Some((now_ns + delay_ns, replies));
        }
        admitted
    }
}

/// How many of the requests that each gateway gets every `pause_ms` are admitted in ten seconds.
fn admitted(rate: &Rate, gateways: usize, pause_ms: u64, delay_ms: u64) -> u64 {
    let mut server = Server::default();
    let mut gateways: Vec<Gateway> = (0..gateways).map(|_| Gateway::default()).collect();
    let mut count = 0;
    for step in 0..10_000 {
        let now_ns = SECOND + step * MS;
        for gateway in &mut gateways {
            if step % pause_ms == 0 {
                count += gateway.request(rate, now_ns);
            }
            count += gateway.exchange(&mut server, delay_ms * MS, now_ns);
        }
    }
    count
}

#[test]
fn gateways_admit_the_rate_together() {
    for (count, burst) in [(100, 100), (100, 10), (5, 5), (500, 50)] {
        let rate = Rate::new(count, 1_000, burst);
        for gateways in [1, 2, 5] {
            for (pause_ms, delay_ms) in [(1, 1), (1, 20), (3, 5)] {
                let demand = 10_000 / pause_ms * gateways as u64;
                let expected = u64::from(burst + 10 * count).min(demand);
                let admitted = admitted(&rate, gateways, pause_ms, delay_ms);
                let off = admitted.abs_diff(expected) * 100;
                let what = format!("{count}/s {burst} {gateways} {pause_ms} {delay_ms}");
                assert!(off <= 3 * expected + 200, "{what}: {admitted} of {expected}");
            }
        }
    }
}

#[test]
fn what_gateways_take_without_asking_is_a_small_part() {
    let rate = Rate::new(1, 1_000, 80);
    let mut gateways: Vec<Gateway> = (0..4).map(|_| Gateway::default()).collect();
    let requests = gateways
        .iter_mut()
        .map(|gateway| (0..100).map(|_| gateway.request(&rate, SECOND)).sum::<u64>());
    let taken: Vec<u64> = requests.collect();
    assert_eq!(taken, [10; 4]);
    // A limit of few tokens is asked about from the first.
    assert_eq!(Gateway::default().request(&Rate::new(5, 60_000, 5), SECOND), 0);
}

#[test]
fn an_empty_bucket_refuses_without_the_server() {
    let rate = Rate::new(1, 1_000, 2);
    let (mut gateway, mut server) = (Gateway::default(), Server::default());
    (0..5).for_each(|_| _ = gateway.request(&rate, SECOND));
    gateway.exchange(&mut server, 0, SECOND);
    assert_eq!(gateway.exchange(&mut server, 0, SECOND), 2);
    let answer = gateway.buckets.spend(ID, &rate, 1, SECOND).unwrap();
    let refused = Spending { is_admitted: false, remaining: 0, retry_ns: SECOND };
    assert_eq!(answer, Answer::Known(refused));
    assert!(!gateway.buckets.is_changed());
    assert_eq!(gateway.buckets.spend(ID, &rate, 1, 2 * SECOND), Some(Answer::Ask));
}

#[test]
fn tokens_that_are_too_few_for_a_request_are_given_back() {
    let rate = Rate::new(1, 1_000, 10);
    let (mut buckets, mut server) = (SharedBuckets::default(), Server::default());
    for (cost, name) in [(7, "first"), (7, "second"), (2, "third")] {
        buckets.ask(ID, &rate, cost, name, SECOND).unwrap();
    }
    let replies = server.answer(&buckets.batch(), SECOND);
    let settled = buckets.settle(&replies, SECOND);
    let admitted = settled.iter().map(|(name, spending)| (*name, spending.is_admitted));
    let admitted: Vec<_> = admitted.collect();
    assert_eq!(admitted, [("first", true), ("second", false), ("third", true)]);
    let batch = buckets.batch();
    assert_eq!((batch[0].taken, batch[0].asked), (-1, 0));
    let replies = server.answer(&batch, SECOND);
    assert_eq!(replies[0].debt_ns, 9 * SECOND);
}

#[test]
fn a_failure_gives_all_requests_back() {
    let rate = Rate::new(1, 1_000, 1);
    let mut buckets = SharedBuckets::default();
    for number in 0..WAITING_MAX {
        buckets.ask(ID, &rate, 1, number, SECOND).unwrap();
        if number == 5 {
            buckets.batch();
        }
    }
    assert_eq!(buckets.ask(ID, &rate, 1, 1, SECOND), Err(1));
    assert_eq!(buckets.fail().len(), WAITING_MAX);
    assert!(!buckets.is_changed() && !buckets.is_asking());
}

#[test]
fn what_is_known_of_many_clients_is_bounded() {
    let rate = Rate::new(100, 1_000, 100);
    let (mut buckets, mut server) = (SharedBuckets::<u32>::default(), Server::default());
    let id = |number: u32| u128::from(number).to_le_bytes();
    let most = u32::try_from(VIEWS_MAX).unwrap();
    // The server is slow: no more is taken than can be reported to it.
    (0..most).for_each(|number| assert!(buckets.spend(id(number), &rate, 1, SECOND).is_some()));
    assert_eq!(buckets.spend(id(most), &rate, 1, SECOND), None);
    while buckets.is_changed() {
        let replies = server.answer(&buckets.batch(), SECOND);
        buckets.settle(&replies, SECOND);
    }
    assert!(buckets.spend(id(most), &rate, 1, SECOND).is_some());
    assert!(buckets.views.len() <= VIEWS_MAX / 2 + 1);
}

proptest! {
    /// Whatever the order of requests and batches, no more is admitted than the rate and what is trusted.
    #[test]
    fn no_order_of_requests_admits_more(
        burst in 1u32..40,
        steps in prop::collection::vec((0usize..3, 0u64..50, any::<bool>()), 1..600),
    ) {
        let rate = Rate::new(10, 1_000, burst);
        let mut server = Server::default();
        let mut gateways: Vec<Gateway> = (0..3).map(|_| Gateway::default()).collect();
        let (mut now_ns, mut count) = (SECOND, 0);
        for (gateway, pause_ms, exchanges) in steps {
            now_ns += pause_ms * MS;
            let gateway = &mut gateways[gateway];
            count += gateway.request(&rate, now_ns);
            if exchanges {
                count += gateway.exchange(&mut server, 10 * MS, now_ns);
            }
            let came_in = (now_ns - SECOND) / (SECOND / 10);
            let trusted = 3 * u64::from(burst) / TRUST;
            prop_assert!(count <= u64::from(burst) + came_in + trusted);
        }
    }
}
