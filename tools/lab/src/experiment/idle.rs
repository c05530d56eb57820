//! 10,000 idle keep-alive connections: the memory of each, and their effect on other requests.
//!
//! Every connection has carried one request, so used connections are measured at rest. Latency is
//! that of a small load, with and without the idle connections, in pairs.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use outboard_http1::Method;
use outboard_http1::client::Client;

use crate::error::{Error, Result, ResultExt};
use crate::generator::{self, Task};
use crate::http::field;
use crate::lab::Lab;
use crate::load::Latency;
use crate::nginx;
use crate::outboard::{NOT_BUILT, Outboard};
use crate::report::Report;
use crate::request_spec::HOST;
use crate::site::{HELLO, Site};
use crate::stack::Stack;
use crate::statistics::{median, paired_ratio};
use crate::verdict::Verdict;

const CONNECTIONS: usize = 10_000;

/// The allowed memory of an idle connection in the stack.
const LIMIT_BYTES: f64 = 8.0 * 1024.0;

/// The factor that a quiet machine can distinguish from noise.
const LATENCY_LIMIT: f64 = 1.10;

/// Connections of the load in addition to the idle ones: below saturation.
const OTHERS: usize = 4;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    let memory = format!("{CONNECTIONS} idle connections: ≤ 8 KiB of memory each");
    let p50 = format!("{CONNECTIONS} idle connections: p50 of others ≤ 1.10 × without");
    let p99 = format!("{CONNECTIONS} idle connections: p99 of others ≤ 1.10 × without");
    let nginx = nginx::with_fpm(lab, &site.root)?;
    // No target depends on the peer's latency.
    let rounds = if lab.effort.is_quick() { 3 } else { lab.effort.slices };
    let peer = measure(lab, &nginx, rounds)?;
    drop(nginx);
    report.notes.push(peer.note());
    let Some(outboard) = Outboard::start(lab, &site.root)? else {
        let missing = [memory, p50, p99].map(|target| Verdict::not_measured(&target, NOT_BUILT));
        report.verdicts.extend(missing);
        return Ok(());
    };
    let idle = measure(lab, &outboard.stack, lab.effort.slices)?;
    report.notes.push(idle.note());
    let measured = format!("{:.0} bytes each, {} of them alive", idle.bytes_each, idle.alive);
    let holds = idle.bytes_each <= LIMIT_BYTES && idle.alive == CONNECTIONS;
    report.verdicts.push(Verdict::exact(&memory, holds, measured));
    for (target, value) in [(p50, p50_us as fn(&Latency) -> f64), (p99, p99_us)] {
        let [without, with] = [&idle.without, &idle.with].map(|all| values(all, value));
        report.verdicts.push(Verdict::ratio(&target, LATENCY_LIMIT, paired_ratio(&with, &without)));
    }
    Ok(())
}

/// The effect of idle connections on one stack.
struct Idle {
    stack: &'static str,
    bytes_each: f64,
    alive: usize,
    without: Vec<Latency>,
    with: Vec<Latency>,
}

impl Idle {
    fn note(&self) -> String {
        let of = |all, value| median(&values(all, value)) / 1e3;
        format!(
            "{CONNECTIONS} idle connections, {}: {:.0} bytes each; others without and with them: \
             p50 {:.3} and {:.3} ms, p99 {:.3} and {:.3} ms",
            self.stack,
            self.bytes_each,
            of(&self.without, p50_us),
            of(&self.with, p50_us),
            of(&self.without, p99_us),
            of(&self.with, p99_us),
        )
    }
}

fn values(all: &[Latency], value: fn(&Latency) -> f64) -> Vec<f64> {
    all.iter().map(value).collect()
}

fn p50_us(latency: &Latency) -> f64 {
    latency.p50_us
}

fn p99_us(latency: &Latency) -> f64 {
    latency.p99_us
}

fn measure(lab: &Lab, stack: &Stack, rounds: usize) -> Result<Idle> {
    generator::run_count(&task(stack, 100), 5_000)?;
    stack.settle();
    let before = stack.group.pss_bytes();
    let mut open = connections(stack.address)?;
    stack.settle();
    let grown = stack.group.pss_bytes().saturating_sub(before);
    let bytes_each = grown as f64 / CONNECTIONS as f64;
    lab.progress(&format!("{}: {bytes_each:.0} bytes per idle connection", stack.name));
    let alive = open.iter().filter(|stream| is_alive(stream)).count();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // The order of "with" and "without" alternates, which also saves every other reopening.
        for occupied in [round % 2 == 0, round % 2 == 1] {
            let present = !open.is_empty();
            match (occupied, present) {
                (true, false) => open = connections(stack.address)?,
                (false, true) => open.clear(),
                _ => {}
            }
            stack.settle();
            let duration = Duration::from_secs_f64(lab.effort.slice_seconds);
            let load = generator::run_for(&task(stack, OTHERS), duration)?.load;
            if occupied { &mut with } else { &mut without }.push(load.latency);
        }
        let (a, b) = (without[round], with[round]);
        lab.progress(&format!(
            "round {:>2}: p50 {:.0} and {:.0} µs, p99 {:.0} and {:.0} µs without and with",
            round + 1,
            a.p50_us,
            b.p50_us,
            a.p99_us,
            b.p99_us
        ));
    }
    Ok(Idle { stack: stack.name, bytes_each, alive, without, with })
}

fn task(stack: &Stack, connections: usize) -> Task {
    Task::get(stack.address, HELLO, connections)
}

/// Opens the connections, each used once.
fn connections(address: SocketAddr) -> Result<Vec<TcpStream>> {
    (0..CONNECTIONS).map(|_| used_connection(address)).collect()
}

fn used_connection(address: SocketAddr) -> Result<TcpStream> {
    let context = || format!("open an idle connection to {address}");
    let stream = TcpStream::connect(address).context(context)?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).context(context)?;
    let mut client = Client::new(stream);
    let request = format!("GET {HELLO} HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
    let (head, mut body) = client.send(&[request.as_bytes()], Method::Get).context(context)?;
    body.read_to_end(&mut Vec::new()).context(context)?;
    let text = String::from_utf8_lossy(&head.bytes);
    let is_closed = field(&text, "connection").is_some_and(|value| value == "close");
    if head.status != 200 || is_closed {
        let what = format!("an idle connection got {text:?}");
        return Err(Error::Unexpected { who: address.to_string(), what });
    }
    Ok(client.into_stream())
}

/// Whether the server has neither closed the connection nor sent anything.
fn is_alive(mut stream: &TcpStream) -> bool {
    let silent = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    stream.set_nonblocking(true).is_ok() && stream.read(&mut [0]).is_err_and(|e| silent(&e))
}
