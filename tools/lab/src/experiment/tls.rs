//! TLS 1.3, HTTP/2 and HTTP/3: files and handshakes against nginx, and the protocols of one server against
//! each other.
//!
//! nginx is the peer for what both serve from memory. Debian's nginx has no HTTP/3: that of Outboard is compared
//! with its HTTP/2, and with another nginx if the user has named one. Invariant: a rate per second is well below what both servers can do, so that
//! it shows what a request costs when the machine is not full.

mod protocols;

use crate::error::Result;
use crate::experiment::hello::cpu_verdict;
use crate::generator::{Over, load_by_tls};
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{KIBIBYTE, MEGABYTE, Site};
use crate::slice::interleave;
use crate::stack::{Stack, check_same_responses};
use crate::tls_listener::TlsListener;
use crate::verdict::Verdict;

/// Streams share connections, as with a proxy in front, or with a page of many parts.
const SHARED: Over = Over::Http2 { connections: 10, streams: 10 };
/// Each request wakes the task of another connection.
const SINGLE: Over = Over::Http2 { connections: 100, streams: 1 };
const HTTP1: Over = Over::Http1 { connections: 100 };

const LARGE: Over = Over::Http2 { connections: 10, streams: 1 };
const LARGE_HTTP1: Over = Over::Http1 { connections: 10 };

const QUIC_SHARED: Over = Over::Http3 { connections: 10, streams: 10 };
const QUIC_SINGLE: Over = Over::Http3 { connections: 100, streams: 1 };
const QUIC_LARGE: Over = Over::Http3 { connections: 10, streams: 1 };

const FULL: Over = Over::Handshakes { connections: 10, resumed: false };
const RESUMED: Over = Over::Handshakes { connections: 10, resumed: true };

/// Nine tenths of the handshakes of a CPU second.
const HANDSHAKE_LIMIT: f64 = 1.0 / 0.9;

/// A table of both servers.
struct Table {
    title: &'static str,
    path: &'static str,
    over: Over,
    /// Requests per second; without it as many as possible.
    rate: Option<f64>,
    /// The CPU of a request, relative to nginx's.
    limit: f64,
}

impl Table {
    const fn new(title: &'static str, path: &'static str, over: Over, limit: f64) -> Self {
        Self { title, path, over, rate: None, limit }
    }

    const fn at(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }

    fn target(&self) -> String {
        format!("{}: CPU per request ≤ {:.2} × nginx", self.title, self.limit)
    }
}

const TABLES: [Table; 11] = [
    Table::new("1 KiB file, HTTP/2 10×10", KIBIBYTE, SHARED, 1.0),
    Table::new("1 KiB file, HTTP/2 10×10 at 2000/s", KIBIBYTE, SHARED, 1.0).at(2_000.0),
    Table::new("1 KiB file, HTTP/2 100×1", KIBIBYTE, SINGLE, 1.0),
    Table::new("1 KiB file, HTTP/2 100×1 at 2000/s", KIBIBYTE, SINGLE, 1.0).at(2_000.0),
    Table::new("1 MB file, HTTP/2 10×1", MEGABYTE, LARGE, 1.0),
    Table::new("1 KiB file, HTTP/1.1 and TLS c=100", KIBIBYTE, HTTP1, 0.8),
    Table::new("1 KiB file, HTTP/1.1 and TLS at 2000/s", KIBIBYTE, HTTP1, 0.8).at(2_000.0),
    Table::new("1 MB file, HTTP/1.1 and TLS c=10", MEGABYTE, LARGE_HTTP1, 0.8),
    Table::new("full handshake c=10", KIBIBYTE, FULL, HANDSHAKE_LIMIT),
    Table::new("resumed handshake c=10", KIBIBYTE, RESUMED, HANDSHAKE_LIMIT),
    Table::new("resumed handshake at 300/s", KIBIBYTE, RESUMED, HANDSHAKE_LIMIT).at(300.0),
];

/// What HTTP/3 may cost relative to nginx's.
const HTTP3_LIMIT: f64 = 1.2;

const HTTP3_TABLES: [Table; 4] = [
    Table::new("1 KiB file, HTTP/3 10×10", KIBIBYTE, QUIC_SHARED, HTTP3_LIMIT),
    Table::new("1 KiB file, HTTP/3 10×10 at 2000/s", KIBIBYTE, QUIC_SHARED, HTTP3_LIMIT)
        .at(2_000.0),
    Table::new("1 KiB file, HTTP/3 100×1", KIBIBYTE, QUIC_SINGLE, HTTP3_LIMIT),
    Table::new("1 MB file, HTTP/3 10×1", MEGABYTE, QUIC_LARGE, HTTP3_LIMIT),
];

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    let theirs = TlsListener::new(lab)?;
    let nginx = nginx::with_files(lab, &site.root, &theirs)?;
    against_nginx(lab, report, &site, (&nginx, &theirs), &TABLES)?;
    drop(nginx);
    match lab.nginx_http3.clone() {
        Some(program) => {
            let nginx = nginx::with_http3_files(lab, &program, &site.root, &theirs)?;
            against_nginx(lab, report, &site, (&nginx, &theirs), &HTTP3_TABLES)?;
        }
        None => report.verdicts.extend(HTTP3_TABLES.iter().map(|table| {
            let why = "no nginx with HTTP/3: ci/nginx-http3 builds one, --nginx-http3 names it";
            Verdict::not_measured(&table.target(), why)
        })),
    }
    protocols::run(lab, report, &site)
}

fn against_nginx(
    lab: &mut Lab,
    report: &mut Report,
    site: &Site,
    (nginx, theirs): (&Stack, &TlsListener),
    tables: &[Table],
) -> Result<()> {
    let ours = TlsListener::new(lab)?.with_http3();
    let setup = Setup { tls: Some(ours.clone()), ..Setup::classic(lab, &site.root) };
    let outboard = Outboard::launch(lab, &setup)?.map(|outboard| outboard.stack);
    let stacks: Vec<&Stack> = outboard.iter().chain([nginx]).collect();
    for table @ Table { title, path, over, rate, limit } in tables {
        let request = RequestSpec::get(path).expecting(check_same_responses(&stacks, path)?);
        lab.progress(title);
        let rounds = interleave(lab, &stacks, |stack| {
            let tls = if stack.name == nginx.name { theirs } else { &ours };
            load_by_tls(stack, tls, &request, *over, *rate, lab.effort.slice_seconds)
        })?;
        report.add_rounds(title, &rounds);
        report.verdicts.push(cpu_verdict(&rounds, &table.target(), nginx.name, *limit));
    }
    Ok(())
}
