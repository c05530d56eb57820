//! What ten access rules cost a request, and how exact a rate limit is.
//!
//! `cargo run --release -p outboard-config --example access_cost`. Ten rules with paths, networks and rate
//! limits are checked for requests of 100,000 addresses, by one thread and by two; then 10,000 addresses send
//! three times their rate.

use outboard_access::{KeyHash, RateTable};
use outboard_config::{Access, Config};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

const ADDRESSES: u32 = 100_000;
const REQUESTS: u32 = 5_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A rule for all requests, and nine for paths of which a request matches one.
const RULES: &str = "
    [app.site]
    root = \"/\"
    front_controller = \"none\"
    [[app.site.access]]
    deny = [\"10.1.0.0/16\", \"192.0.2.0/24\", \"2001:db8::/32\"]
    rate_limit = { rate = \"1000000/s\", clients = 100_000 }
";

fn access() -> Access {
    let path = |number: u32| {
        format!(
            "[[app.site.access]]\npath = \"/section-{number}/\"\nallow = [\"0.0.0.0/1\", \"::/0\"]\n\
             rate_limit = {{ rate = \"1000000/s\", clients = 100_000 }}\n"
        )
    };
    let text = (1..10).map(path).fold(RULES.to_owned(), |text, rule| text + &rule);
    let config = Config::parse(&text, Path::new("/etc/outboard.toml"));
    config.unwrap_or_else(|errors| panic!("{errors}")).apps[0].access.clone()
}

fn address(number: u32) -> IpAddr {
    match number % 4 {
        0 => IpAddr::V6(Ipv6Addr::from_bits(u128::from(number) << 64)),
        _ => IpAddr::V4(Ipv4Addr::from_bits(0x0b00_0000 + number)),
    }
}

/// As the gateway does; whether the request is admitted.
fn admits(access: &Access, tables: &[RateTable], client: IpAddr, now_ns: u64) -> bool {
    let rules =
        access.of_request(b"/section-5/index.php", outboard_config::ConditionSet::default());
    let refuses = |index: usize| access.rules[index].admission.refuses(Some(client));
    if rules.indices().any(refuses) {
        return false;
    }
    let key = KeyHash::of(Some(client));
    rules.indices().all(|index| tables[index].spend(key, now_ns).is_admitted)
}

/// The processor time of this thread: others may use the processors as well.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("proc(5) is mounted");
    let first = text.split(' ').next().and_then(|number| number.parse().ok());
    first.expect("schedstat begins with a number")
}

fn run(access: &Access, tables: &[RateTable], seed: u32) -> f64 {
    let started_ns = processor_ns();
    let (mut admitted, mut number) = (0, seed);
    for _ in 0..REQUESTS {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let client = address(number % ADDRESSES);
        admitted += u32::from(admits(access, tables, client, SECOND_NS));
    }
    assert!(admitted > REQUESTS / 2, "{admitted} of {REQUESTS}");
    (processor_ns() - started_ns) as f64 / f64::from(REQUESTS)
}

fn costs() {
    let access = access();
    let table =
        |_| RateTable::new(outboard_access::Rate::new(1_000_000, 1_000, 1_000_000), 100_000);
    let tables: Vec<RateTable> = (0..10).map(table).collect();
    println!("rules                 {}", access.rules.len());
    println!("one thread            {:.0} ns a request", run(&access, &tables, 1));
    let of_two = std::thread::scope(|scope| {
        let threads = [1, 2].map(|seed| {
            scope.spawn({
                let (access, tables) = (&access, &tables);
                move || run(access, tables, seed)
            })
        });
        threads.map(|thread| thread.join().expect("it does not panic"))
    });
    println!("two threads, each     {:.0} and {:.0} ns a request", of_two[0], of_two[1]);
    let bytes = tables[0].bytes() as f64 / f64::from(ADDRESSES);
    println!("memory                {bytes:.0} bytes an address, key included, of {ADDRESSES}");
}

fn accuracy() {
    let (clients, rate, seconds) = (10_000_u32, 100_u32, 20_u64);
    let table = RateTable::new(outboard_access::Rate::new(rate, 1_000, rate), 100_000);
    let (mut admitted, mut sent) = (0_u64, 0_u64);
    // All of them send every 1000/300 ms. The first second has the burst.
    for step in 0..(seconds + 1) * 300 {
        let now_ns = SECOND_NS + step * SECOND_NS / 300;
        for client in 0..clients {
            let is_admitted = table.spend(KeyHash::of(address(client)), now_ns).is_admitted;
            if step >= 300 {
                sent += 1;
                admitted += u64::from(is_admitted);
            }
        }
    }
    let limit = u64::from(clients) * u64::from(rate) * seconds;
    let share = 100.0 * admitted as f64 / limit as f64;
    println!("rate limit            {admitted} of {sent} admitted, {share:.2}% of the limit");
}

fn main() {
    costs();
    accuracy();
}
