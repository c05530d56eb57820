//! A page of 20 objects over a link that loses packets: the time to its last byte, HTTP/3 against HTTP/2.
//!
//! Each page load is a new connection with 20 concurrent requests of 30 KB, as of a browser on its first visit.
//! The time begins with the handshake. The protocols take turns at one server over one link, with several
//! algorithms of congestion control for TCP; HTTP/3 has CUBIC. Invariant: the n-th page loads of both protocols
//! are a pair.

use std::net::SocketAddr;
use std::time::Duration;

use crate::error::Result;
use crate::generator::{Over, load_page};
use crate::lab::Lab;
use crate::lossy_link::{FAR, LossyLink, NEAR};
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{OBJECT, Site};
use crate::stack::check_same_responses;
use crate::statistics::{median, paired_ratio};
use crate::tls_listener::TlsListener;
use crate::verdict::Verdict;

/// Half of a round trip of 50 ms.
const DELAY: Duration = Duration::from_millis(25);
/// The first says what the protocols take without losses, and is no target.
const LOSSES: [f64; 3] = [0.0, 0.01, 0.05];

const OBJECTS: usize = 20;
const HTTP2: Over = Over::Http2 { connections: 1, streams: OBJECTS };
const HTTP3: Over = Over::Http3 { connections: 1, streams: OBJECTS };

/// The algorithms for HTTP/2, if the kernel has them (tcp(7)).
const ALGORITHMS: [&str; 2] = ["cubic", "bbr"];

/// Page loads of each protocol: losses are rare events, so more than the slices of a load.
const PAGES: u64 = 30;

/// The times of one share of losses in ms, in pairs.
struct Times {
    loss: f64,
    http2: Vec<f64>,
    http3: Vec<f64>,
}

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    let link = LossyLink::start(lab, DELAY)?;
    for algorithm in ALGORITHMS {
        let targets = LOSSES.map(|loss| {
            let lost = loss * 100.0;
            format!("page over 50 ms, {lost} % lost: time of HTTP/3 < HTTP/2 with {algorithm}")
        });
        let times = link.within(|| match link.select_congestion_control(algorithm)? {
            true => measure(lab, &site, &link).map(|times| times.ok_or(NOT_BUILT)),
            false => Ok(Err("the kernel lacks this algorithm")),
        })?;
        let verdicts = targets.iter().enumerate().filter_map(|(at, target)| match &times {
            Ok(times) => times[at].verdict(target),
            Err(why) => (LOSSES[at] > 0.0).then(|| Verdict::not_measured(target, why)),
        });
        report.verdicts.extend(verdicts);
    }
    Ok(())
}

/// The times for each of [`LOSSES`]; `None` without a binary.
fn measure(lab: &mut Lab, site: &Site, link: &LossyLink) -> Result<Option<Vec<Times>>> {
    let tls = TlsListener::new(lab)?.with_http3().at(NEAR);
    let setup = Setup { tls: Some(tls.clone()), ..Setup::classic(lab, &site.root) };
    let Some(outboard) = Outboard::launch(lab, &setup)? else { return Ok(None) };
    let length = check_same_responses(&[&outboard.stack], OBJECT)?;
    let request = RequestSpec::get(OBJECT).expecting(length);
    let server = SocketAddr::new(FAR, tls.address.port());
    let times = LOSSES.iter().map(|&loss| times_at(lab, link, loss, &request, server));
    times.collect::<Result<Vec<_>>>().map(Some)
}

fn times_at(
    lab: &Lab,
    link: &LossyLink,
    loss: f64,
    request: &RequestSpec,
    server: SocketAddr,
) -> Result<Times> {
    link.lose(loss);
    let load = |over| -> Result<f64> { Ok(load_page(request, server, over)?.as_secs_f64() * 1e3) };
    let mut times = Times { loss, http2: Vec::new(), http3: Vec::new() };
    for _ in 0..PAGES / lab.effort.shortening {
        times.http2.push(load(HTTP2)?);
        times.http3.push(load(HTTP3)?);
    }
    lab.progress(&format!("{} % lost: {}", loss * 100.0, times.words()));
    Ok(times)
}

impl Times {
    fn words(&self) -> String {
        let (http3, http2) = (median(&self.http3), median(&self.http2));
        format!("HTTP/3 {http3:.0} ms, HTTP/2 {http2:.0} ms (median of {})", self.http3.len())
    }

    fn verdict(&self, target: &str) -> Option<Verdict> {
        let mut verdict = Verdict::ratio(target, 1.0, paired_ratio(&self.http3, &self.http2));
        verdict.measured = format!("{}; {}", verdict.measured, self.words());
        (self.loss > 0.0).then_some(verdict)
    }
}
