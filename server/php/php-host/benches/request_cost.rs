//! CPU time of a worker per request. Classic mode: start-up, cached script, shutdown, ring. Worker
//! mode: request state, handler, response, ring; and the same with the package's MVC.
//!
//! Run with `cargo bench -p outboard-php`; `-- worker` measures only worker mode. Requests are
//! queued in the ring in advance, so that the worker never sleeps and wake-ups are not included.
//! The kernel counts the time.

#[path = "../tests/driver/mod.rs"]
mod driver;

use driver::{Host, RequestSpec, TempDir, Worker, get, ini, settings, settings_of_worker};
use outboard_ring::channel::LEASES;
use outboard_ring::control::{HostSettings, Sandbox};
use outboard_ring::frame::{FrameKind, Tag};

const REQUESTS: u32 = 50_000;

/// The minimum of this number of runs counts, because other load only adds time.
const RUNS: u32 = 8;

/// CPU time in ns (the first field of proc(5) schedstat).
fn cpu_ns(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn run(worker: &mut Worker, request: &RequestSpec, requests: u32) {
    let mut payload = Vec::new();
    request.encode(&mut payload);
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

fn measure(name: &str, request: &RequestSpec, overrides: &[(&str, &str)]) {
    measure_in(settings(), name, request, overrides);
}

fn measure_in(
    mut settings: HostSettings,
    name: &str,
    request: &RequestSpec,
    overrides: &[(&str, &str)],
) {
    settings.ini.extend(ini(&[("max_execution_time", "0"), ("max_input_time", "0")]));
    settings.ini.extend(ini(overrides));
    let mut host = Host::with(settings);
    let mut worker = host.fork();
    run(&mut worker, request, REQUESTS / 5);
    let runs = (0..RUNS).map(|_| {
        let begin = cpu_ns(worker.pid);
        run(&mut worker, request, REQUESTS);
        (cpu_ns(worker.pid) - begin) / u64::from(REQUESTS)
    });
    let minimum = runs.min().expect("there are some");
    println!("{name:<44} {minimum:>6} ns");
}

/// The same by a worker that is confined as it is by default.
fn measure_in_sandbox(name: &str, request: &RequestSpec) {
    let app_paths = vec![settings().document_root];
    let sandbox = Some(Sandbox { app_paths, ..Sandbox::default() });
    measure_in(HostSettings { sandbox, ..settings() }, &format!("{name}, sandbox"), request, &[]);
}

const ANSWER: &str = "Outboard\\Response::text('hello from a controller', headers: [
    'Last-Modified' => 'Fri, 02 Sep 2016 08:00:00 GMT',
    'ETag' => '\"57c93480-17\"',
    'Accept-Ranges' => 'bytes',
])";

fn measure_worker(folder: &TempDir, request: &RequestSpec, name: &str, code: &str) {
    let script = folder.write("worker.php", &format!("<?php {code}"));
    measure_in(settings_of_worker(script), name, request, &[]);
}

/// The cost of a request in a worker script, and the share of the MVC.
fn measure_workers(folder: &TempDir) {
    let request = get("index.php");
    let echo = "while (Outboard\\handle_request(function () { echo 'hello'; })) {}";
    measure_worker(folder, &request, "handle_request(), echo", echo);
    let text = "Outboard\\serve(fn () => 'hello');";
    measure_worker(folder, &request, "serve(), a string", text);
    measure_worker(
        folder,
        &request,
        "serve(), a Response",
        &format!("Outboard\\serve(fn () => {ANSWER});"),
    );
    let controller = format!(
        "<?php namespace demo\\controller; use Outboard; use Outboard\\Mvc\\Route; use Outboard\\Response;
         final class index {{ #[Route('/index.php')] public function page(): Response {{ return {ANSWER}; }} }}"
    );
    folder.write("modules/demo/controller/index.php", &controller);
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../php/autoload.php");
    let mvc = format!(
        "require '{package}'; (new Outboard\\Mvc\\Application(__DIR__ . '/modules'))->serve();"
    );
    measure_worker(folder, &request, "the same with a controller of the MVC", &mvc);
}

fn main() {
    let folder = TempDir::new();
    println!("worker CPU time per request, the minimum of {RUNS} runs of {REQUESTS} requests");
    if !std::env::args().any(|argument| argument == "worker") {
        measure_classic(&folder);
    }
    measure_workers(&folder);
}

fn measure_classic(folder: &TempDir) {
    folder.write("server.php", "<?php echo count($_SERVER) > 20 ? 'y' : 'n';");
    let browser = |request: RequestSpec| {
        request
            .header("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36")
            .header("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
            .header("Accept-Language", "en-GB,en;q=0.9,de;q=0.8")
            .header("Accept-Encoding", "gzip, deflate, br")
            .header("Cookie", "session=0123456789abcdef0123456789abcdef; theme=dark")
            .header("Connection", "keep-alive")
    };
    measure("hello.php", &get("hello.php"), &[]);
    measure("hello.php, a browser's headers", &browser(get("hello.php")), &[]);
    measure("reads $_SERVER", &browser(get("server.php")).root(&folder.0), &[]);
    let limits = [("max_execution_time", "30"), ("max_input_time", "60")];
    measure("hello.php, php.ini's time limits", &get("hello.php"), &limits);
    measure("hello.php, user_ini.filename empty", &get("hello.php"), &[("user_ini.filename", "")]);
    measure_in_sandbox("hello.php", &get("hello.php"));
    folder.write("open.php", "<?php echo strlen(file_get_contents(__FILE__));");
    measure("opens a file", &get("open.php").root(&folder.0), &[]);
    measure_in_sandbox("opens a file", &get("open.php").root(&folder.0));
    measure("hello.php, no opcache", &get("hello.php"), &[("opcache.enable", "0")]);
}
