//! The only worker of an app, rewound after each request, ends in each way that a request can end it: how soon
//! after its death a successor has answered the next request.
//!
//! The dying request writes down the time itself; the next one waits in the queue meanwhile. Requests that fail
//! without a death are measured as well: their worker is its own successor.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result, ResultExt};
use crate::fixture::Fixture;
use crate::http;
use crate::lab::Lab;
use crate::outboard::{NAME, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::statistics::median;
use crate::verdict::Verdict;

/// Deaths of each kind.
const DEATHS: u64 = 40;

/// Strings that the script holds: with the engine's own memory they make 30 MB.
const KEPT_MIB: &str = "22";

const LIMIT_MS: f64 = 5.0;

/// How long the dying request waits for the next one.
const AHEAD: Duration = Duration::from_millis(8);

/// What a request does, and whether the worker dies of it.
const WAYS: [(&str, &str); 9] = [
    ("kill", "kill -9"),
    ("terminate", "SIGTERM"),
    ("overflow", "a stack overflow"),
    ("crash", "SIGSEGV by FFI"),
    ("leave", "_exit by FFI"),
    ("limit", "a limit that cannot be put back"),
    ("memory", "the memory limit"),
    ("fatal", "a fatal error"),
    ("fiber", "exit in a fiber"),
];

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let deaths = DEATHS / lab.effort.shortening;
    let died = lab.directory("died")?.join("at");
    let path = died.to_string_lossy().into_owned();
    let fixture = Fixture::unpack(lab, "rewind", &[("MIB", KEPT_MIB), ("DIED", &path)])?;
    crate::system::write(&died, "")?;
    open_to_all(&died)?;
    let root = fixture.writable("empty")?;
    let setup = Setup::rewind(&fixture, "dying.php", 1)
        .rooted(&root)
        .with_threads(1)
        .with("[app.site.php.ini]\n\"ffi.enable\" = \"1\"\nmemory_limit = \"128M\"\n");
    let Some(outboard) = Outboard::launch(lab, &setup)? else {
        for (_, name) in WAYS {
            report.verdicts.push(Verdict::not_measured(&target(name), NOT_BUILT));
        }
        return Ok(());
    };
    for (way, name) in WAYS {
        let times_ms = measure(outboard.stack.address, way, &died, deaths)?;
        let p50 = median(&times_ms);
        let longest = times_ms.iter().copied().fold(0.0, f64::max);
        let measured = format!("p50 {p50:.2} ms, longest {longest:.2} ms");
        lab.progress(&format!("{name}: {measured}"));
        report.verdicts.push(Verdict::exact(&target(name), p50 <= LIMIT_MS, measured));
    }
    Ok(())
}

fn target(name: &str) -> String {
    format!("rewind, 30 MB process, {name}: a successor answers ≤ {LIMIT_MS} ms after, p50")
}

fn open_to_all(path: &Path) -> Result<()> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(path, mode).context(|| format!("chmod {}", path.display()))
}

fn measure(address: SocketAddr, way: &str, died: &Path, deaths: u64) -> Result<Vec<f64>> {
    let mut times_ms = Vec::new();
    for _ in 0..deaths {
        // Crashes without a success between them are a crash loop.
        expect_up(address)?;
        let answered_ns = thread::scope(|scope| {
            scope.spawn(|| http::get(address, &format!("/{way}")));
            thread::sleep(AHEAD);
            expect_up(address)
        })?;
        let died_ns = read_time(died)?;
        times_ms.push(answered_ns.saturating_sub(died_ns) as f64 / 1e6);
    }
    Ok(times_ms)
}

/// The time at which the response was there.
fn expect_up(address: SocketAddr) -> Result<u64> {
    let response = http::get(address, "/up")?;
    let now = clock_gettime(ClockId::Monotonic);
    if response.status != 200 || response.body != b"up" {
        return Err(Error::Unexpected { who: NAME.into(), what: response.summary() });
    }
    Ok(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
}

fn read_time(path: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(path).context(|| format!("read {}", path.display()))?;
    text.trim().parse().map_err(|_| Error::Unexpected {
        who: NAME.into(),
        what: format!("no time of death: {text:?}"),
    })
}
