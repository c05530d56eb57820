//! An application cannot tell Outboard from nginx + php-fpm: each fixture gets the same request
//! from both, and what the client sees is compared. Every test also says what it ought to see,
//! so that two equal failures are no success.

#![forbid(unsafe_code)]

mod body;
mod configured;
mod disconnect;
mod failure;
mod header;
mod input;
mod isolation;
mod output;
mod path;
mod session;
mod settings;
mod streaming;
mod surroundings;
mod upload;
mod variables;

use outboard_e2e::{Docroot, Fifo, Pair, Scrub};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What may differ in bodies and headers, besides ports; each with its reason.
fn scrub() -> Scrub {
    Scrub::new()
        // A session's name is random.
        .replace(r"PHPSESSID=[0-9a-zA-Z,-]{22,}", "PHPSESSID=ID")
        // Expiry dates of cookies are said in seconds from now.
        .replace(r"expires=[A-Z][a-z]{2}, \d\d-[A-Z][a-z]{2}-\d{4}[^;]*", "expires=DATE")
}

struct Bench {
    docroot: Docroot,
    pair: Pair,
}

/// One pair of servers for all tests of default settings.
fn bench() -> &'static Bench {
    static BENCH: OnceLock<Bench> = OnceLock::new();
    BENCH.get_or_init(|| {
        let docroot = Docroot::of("fidelity");
        let protected = docroot.beside().folder("protected");
        std::fs::write(protected.join("report.txt"), "the protected report\n").expect("ours");
        let app = docroot.app().accel("/protected/", protected).env("APP_ENV", "e2e").workers(4);
        let pair = Pair::start(&app).scrubbed(scrub());
        Bench { docroot, pair }
    })
}

fn pair() -> &'static Pair {
    &bench().pair
}

/// A fresh named pipe that scripts can reach.
fn fifo() -> Fifo {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Fifo::at(bench().docroot.beside().path().join(format!("fifo-{number}")))
}
