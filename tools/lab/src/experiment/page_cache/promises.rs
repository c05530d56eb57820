//! The guarantees of a page cache: it shows what was published, renders a page once for all, and
//! serves stale pages while a backend is down.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::background::load_while;
use crate::error::{Result, ResultExt};
use crate::generator::{self, Task};
use crate::http;
use crate::lab::Lab;
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::{HOST, RequestSpec};
use crate::site::date_back;
use crate::system::{free_address, write};
use crate::verdict::Verdict;

const PUBLISHED: &str =
    "a post published under load: the next request shows it, none shows an older one";
const EXPIRY: &str = "500 clients at each expiry: 1 render";
const DOWN: &str = "backend down: the old page for stale-if-error, then 502";

const POSTS: u64 = 50;
/// Requests of the load between two posts.
const BETWEEN: u64 = 500;
const CLIENTS: usize = 500;
/// How long the page of a backend is fresh, and how much longer it may be served stale.
const FRESH_S: u64 = 1;
const STANDS_IN_S: u64 = 3;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let directory = lab.directory("promises")?;
    let backend = Backend::start()?;
    let setup = Setup::classic(lab, &directory).named("outboard, promises").with(&format!(
        "[[app.site.proxy]]
path = \"/backend\"
upstream = \"http://{}\"
[app.site.page_cache]
mode = \"on\"
purge_from = [\"127.0.0.1\"]
",
        backend.address
    ));
    let (post, renders) = scripts(&directory)?;
    let Some(outboard) = Outboard::launch(lab, &setup)? else {
        for target in [PUBLISHED, EXPIRY, DOWN] {
            report.verdicts.push(Verdict::not_measured(target, NOT_BUILT));
        }
        return Ok(());
    };
    let posts = POSTS / lab.effort.shortening;
    report.verdicts.push(publish(&outboard, &post, posts)?);
    let seconds = lab.effort.short_slice_seconds().max(3.0);
    report.verdicts.push(expire(&outboard, &renders, seconds)?);
    report.verdicts.push(go_down(&outboard, backend)?);
    Ok(())
}

/// Writes the pages; returns the post that one shows, and the file where the other records each
/// run.
fn scripts(directory: &Path) -> Result<(PathBuf, PathBuf)> {
    let (post, renders) = (directory.join("post.txt"), directory.join("renders.txt"));
    write(&post, "0")?;
    write(&renders, "")?;
    // PHP runs as another user.
    let open = Permissions::from_mode(0o666);
    std::fs::set_permissions(&renders, open).context(|| "open the file of renders".into())?;
    let pages = [
        ("index.php", "<?php echo 'ok';".to_owned()),
        (
            "post.php",
            "<?php header('Cache-Control: max-age=3600'); readfile(__DIR__ . '/post.txt');"
                .to_owned(),
        ),
        (
            "expiring.php",
            "<?php header('Cache-Control: max-age=1, must-revalidate');
             file_put_contents(__DIR__ . '/renders.txt', 'x', FILE_APPEND);
             usleep(50000); echo 'ok';"
                .to_owned(),
        ),
    ];
    for (name, code) in pages {
        write(&directory.join(name), code)?;
        date_back(&directory.join(name))?;
    }
    Ok((post, renders))
}

fn publish(outboard: &Outboard, post: &Path, posts: u64) -> Result<Verdict> {
    let address = outboard.stack.address;
    let task = Task::get(address, "/post.php", 10);
    let purge = format!("PURGE /post.php HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", HOST);
    let (account, late) = load_while(&task, |background| {
        let mut late = 0;
        for number in 1..=posts {
            background.await_requests(BETWEEN);
            write(post, number.to_string())?;
            http::exchange(address, purge.as_bytes())?;
            for _ in 0..5 {
                let shown = http::get(address, "/post.php")?.body;
                late += u64::from(shown != number.to_string().as_bytes());
            }
        }
        Ok(late)
    })?;
    let good = account.statuses.get(&200).copied().unwrap_or(0);
    let holds = late == 0 && account.statuses.len() == 1 && good > 0;
    let measured = format!("{posts} posts among {good} requests: {late} old pages after a purge");
    Ok(Verdict::exact(PUBLISHED, holds, measured))
}

fn expire(outboard: &Outboard, renders: &Path, seconds: f64) -> Result<Verdict> {
    let request = RequestSpec::get("/expiring.php");
    let load = generator::load(&outboard.stack, &request, CLIENTS, seconds)?;
    let count = std::fs::read(renders).context(|| "read the file of renders".into())?.len();
    // A page with a lifetime of one second expires at the next second of the clock.
    let expiries = seconds.ceil() as usize + 1;
    let holds = load.failures.total() == 0 && (1..=expiries).contains(&count);
    let measured = format!(
        "{count} renders in {seconds} s for {} responses of a page that lives a second, {} failed",
        load.responses, load.failures
    );
    Ok(Verdict::exact(EXPIRY, holds, measured))
}

fn go_down(outboard: &Outboard, backend: Backend) -> Result<Verdict> {
    let request = RequestSpec::get("/backend");
    let look = || -> Result<(u16, String)> {
        let (response, head) = http::send_with_head(outboard.stack.address, &request)?;
        Ok((response.status, http::field(&head, "x-cache").unwrap_or_default().to_owned()))
    };
    let fresh = look()?;
    let began = Instant::now();
    backend.stop();
    let mut stale = 0;
    let mut last = fresh.clone();
    while last.0 == 200 && began.elapsed() < Duration::from_secs(FRESH_S + 3 * STANDS_IN_S) {
        thread::sleep(Duration::from_millis(100));
        last = look()?;
        stale += u32::from(last == (200, "STALE".to_owned()));
    }
    let after_s = began.elapsed().as_secs_f64();
    let holds = fresh.0 == 200 && stale > 0 && last.0 == 502;
    let measured = format!(
        "{} at first, {stale} times the old page, {} after {after_s:.1} s",
        fresh.0, last.0
    );
    Ok(Verdict::exact(DOWN, holds, measured))
}

/// A server of one page, which can be stopped.
struct Backend {
    address: std::net::SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Backend {
    fn start() -> Result<Self> {
        let address = free_address()?;
        let listener = TcpListener::bind(address).context(|| format!("listen on {address}"))?;
        let stopped = Arc::new(AtomicBool::new(false));
        let theirs = stopped.clone();
        let thread = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if theirs.load(Ordering::Relaxed) {
                    return;
                }
                let mut lines = BufReader::new(&stream).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                // A client that has disconnected needs no response.
                let _ = write!(
                    &stream,
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\nCache-Control: \
                     max-age={FRESH_S}, stale-if-error={STANDS_IN_S}, stale-while-revalidate=0\r\n\r\nok"
                );
            }
        });
        Ok(Self { address, stopped, thread })
    }

    fn stop(self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _ = std::net::TcpStream::connect(self.address);
        let _ = self.thread.join();
    }
}
