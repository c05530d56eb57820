//! CPU time of a worker per classic request: start-up, cached script, shutdown, ring.
//!
//! Run with `cargo bench -p outboard-php`. Requests are queued ahead in the ring, so that the
//! worker never sleeps and the figure holds no wake-ups. Time is the worker's own, by the kernel.

#[path = "../tests/driver/mod.rs"]
mod driver;

use driver::{Ask, Folder, Host, Worker, get, ini, settings};
use outboard_ring::channel::LEASES;
use outboard_ring::frame::{FrameKind, Tag};

const REQUESTS: u32 = 200_000;

/// Time on a processor, ns (the first field of proc(5) schedstat).
fn cpu_ns(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn run(worker: &mut Worker, ask: &Ask, requests: u32) {
    let mut payload = Vec::new();
    ask.encode(&mut payload);
    let (mut sent, mut done) = (0, 0);
    while done < requests {
        while sent < requests && sent - done < 16 {
            let tag = Tag { slot: (sent + 1) % LEASES as u32, generation: sent + 1 };
            worker.channel.offer(tag);
            if !worker.channel.push(FrameKind::Request, tag, &[&payload]).unwrap() {
                break;
            }
            sent += 1;
        }
        worker.publish();
        while let Some((header, _)) = worker.try_frame() {
            done += u32::from(header.kind == FrameKind::Done);
        }
    }
}

fn measure(name: &str, ask: &Ask, overrides: &[(&str, &str)]) {
    let mut settings = settings();
    settings.ini.extend(ini(&[("max_execution_time", "0"), ("max_input_time", "0")]));
    settings.ini.extend(ini(overrides));
    let mut host = Host::with(settings);
    let mut worker = host.fork();
    run(&mut worker, ask, 20_000);
    let begin = cpu_ns(worker.pid);
    run(&mut worker, ask, REQUESTS);
    let each = (cpu_ns(worker.pid) - begin) / u64::from(REQUESTS);
    println!("{name:<44} {each:>6} ns");
}

fn main() {
    let folder = Folder::new();
    folder.write("server.php", "<?php echo count($_SERVER) > 20 ? 'y' : 'n';");
    let browser = |ask: Ask| {
        ask.header("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36")
            .header("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
            .header("Accept-Language", "en-GB,en;q=0.9,de;q=0.8")
            .header("Accept-Encoding", "gzip, deflate, br")
            .header("Cookie", "session=0123456789abcdef0123456789abcdef; theme=dark")
            .header("Connection", "keep-alive")
    };
    println!("worker CPU time per request, {REQUESTS} requests each");
    measure("hello.php", &get("hello.php"), &[]);
    measure("hello.php, a browser's headers", &browser(get("hello.php")), &[]);
    measure("reads $_SERVER", &browser(get("server.php")).root(&folder.0), &[]);
    let limits = [("max_execution_time", "30"), ("max_input_time", "60")];
    measure("hello.php, php.ini's time limits", &get("hello.php"), &limits);
    measure("hello.php, user_ini.filename empty", &get("hello.php"), &[("user_ini.filename", "")]);
    measure("hello.php, no opcache", &get("hello.php"), &[("opcache.enable", "0")]);
}
