//! Each superglobal, however it was asked for and whenever the file that mentions it was compiled:
//! a resident script finds what a script per request finds.

mod driver;

use driver::{
    Host, RequestSpec, TempDir, Worker, finished, get, post, settings, settings_of_worker,
};
use outboard_ring::control::Isolation;
use outboard_ring::frame::FrameKind;
use std::collections::BTreeMap;

/// What shows each, to be put into a function.
const PROBES: [(&str, &str); 9] = [
    ("get", "$_GET"),
    ("post", "$_POST"),
    ("cookie", "$_COOKIE"),
    (
        "files",
        "array_map(fn ($file) => [array_diff_key($file, ['tmp_name' => 0]), file_get_contents($file['tmp_name'])], $_FILES)",
    ),
    ("request", "$_REQUEST"),
    (
        "server",
        "array_intersect_key($_SERVER, array_flip(['REQUEST_METHOD', 'QUERY_STRING', 'CONTENT_TYPE', 'HTTP_COOKIE', 'FCGI_ROLE']))",
    ),
    ("env", "$_ENV['APP_COLOUR']"),
    ("session", "isset($_SESSION)"),
    (
        "filter",
        "[filter_input(INPUT_GET, 'g'), filter_input(INPUT_POST, 'p'), filter_input(INPUT_COOKIE, 'c'), filter_input(INPUT_SERVER, 'REQUEST_METHOD')]",
    ),
];

/// When the file that mentions it is compiled.
const MOMENTS: [&str; 3] = ["boot", "first", "later"];

/// A resident script that shows what the file `PROBE.MOMENT.ROUND.php` does, which a request names in a
/// field; it keeps the function that the file has returned, and mentions no superglobal. Requests of a
/// round meet before and after the file is compiled.
const RESIDENT: &str = r#"<?php
    $probes = $come = [];
    foreach (PRELOADS ? glob(__DIR__ . '/*.boot.*.php') : [] as $file) { $probes[basename($file)] = require $file; }
    function meet(string $where): void {
        $GLOBALS['come'][$where] = ($GLOBALS['come'][$where] ?? 0) + 1;
        for ($i = 0; $i < 2000 && $GLOBALS['come'][$where] < CONCURRENCY; $i++) { Outboard\sleep(0.0005); }
    }
    while (Outboard\handle_request(function () {
        $name = getallheaders()['X-Probe'];
        if ($name === 'none') { return; }
        if (CONCURRENCY > 1) { meet("$name begun"); }
        $show = $GLOBALS['probes'][$name] ??= require __DIR__ . "/$name";
        if (CONCURRENCY > 1) { meet("$name compiled"); }
        echo $show();
    }));"#;

/// How a request may come.
fn shapes(script: &str, probe: &str) -> [RequestSpec; 3] {
    let upload = "--b\r\nContent-Disposition: form-data; name=\"p\"\r\n\r\n5\r\n\
        --b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\n\r\nhello\r\n--b--\r\n";
    [
        get(script).query("g=1&r=g"),
        post(script, "application/x-www-form-urlencoded", "p=4&r=p").query("g=2"),
        post(script, "multipart/form-data; boundary=b", upload),
    ]
    .map(|request| request.header("Cookie", "c=3").header("X-Probe", probe))
}

/// What a script per request says to each shape.
fn of_classic(folder: &TempDir) -> BTreeMap<&'static str, [String; 3]> {
    let mut host = Host::with(settings());
    let mut worker = host.fork();
    let mut said = BTreeMap::new();
    for (name, _) in PROBES {
        let file = format!("{name}.php");
        folder.write(&file, &format!("<?php echo (require __DIR__ . '/{name}.boot.0.php')();"));
        let requests = shapes(&file, name).map(|request| request.root(&folder.0));
        said.insert(name, requests.map(|request| finished(&worker.request(&request))));
    }
    said
}

fn write_probes(folder: &TempDir) {
    for (name, shown) in PROBES {
        for moment in MOMENTS {
            for round in 0..3 {
                let code = format!("<?php return fn () => json_encode({shown});");
                folder.write(&format!("{name}.{moment}.{round}.php"), &code);
            }
        }
    }
}

fn host(folder: &TempDir, preloads: bool, concurrency: u32, isolation: Isolation) -> Host {
    let code = RESIDENT.replace("CONCURRENCY", &concurrency.to_string());
    let code = code.replace("PRELOADS", if preloads { "true" } else { "false" });
    let mut settings = settings_of_worker(folder.write("worker.php", &code));
    let worker = settings.worker.as_mut().unwrap();
    (worker.concurrency, worker.isolation) = (concurrency, isolation);
    Host::with(settings)
}

/// The answers to these, which are under way together.
fn ask_together(worker: &mut Worker, requests: &[RequestSpec]) -> Vec<String> {
    let mut tags = Vec::new();
    for request in requests {
        let tag = worker.begin(request);
        if let Some(body) = &request.body {
            worker.push(FrameKind::RequestBody, tag, body);
        }
        tags.push(tag);
    }
    let mut responses = worker.finish_all(&tags);
    responses.sort_by_key(|(place, _)| *place);
    responses.iter().map(|(_, response)| finished(response)).collect()
}

/// Goes through the table; `ask` answers three requests of which the first is the one that has the file
/// compiled.
fn each_is_that_of_classic(
    concurrency: u32,
    isolation: Isolation,
    mut request: impl FnMut(&mut Host, bool, &[RequestSpec]) -> Vec<String>,
) {
    let folder = TempDir::new();
    write_probes(&folder);
    let expected = of_classic(&folder);
    for moment in MOMENTS {
        let mut host = host(&folder, moment == "boot", concurrency, isolation);
        for (name, first) in PROBES.iter().flat_map(|(name, _)| (0..3).map(move |n| (*name, n))) {
            let file = format!("{name}.{moment}.{first}.php");
            let mut requests = shapes("worker.php", &file);
            requests.rotate_left(first);
            let mut wanted = expected[name].clone();
            wanted.rotate_left(first);
            assert_eq!(request(&mut host, moment == "later", &requests), wanted, "{file}");
        }
    }
}

#[test]
fn one_request_after_the_other() {
    each_is_that_of_classic(1, Isolation::Reset, |host, is_later, requests| {
        let mut worker = host.fork();
        if is_later {
            shapes("worker.php", "none").iter().for_each(|request| _ = worker.request(request));
        }
        requests.iter().map(|request| finished(&worker.request(request))).collect()
    });
}

#[test]
fn three_at_a_time() {
    each_is_that_of_classic(3, Isolation::Reset, |host, is_later, requests| {
        let mut worker = host.fork();
        if is_later {
            shapes("worker.php", "none").iter().for_each(|request| _ = worker.request(request));
        }
        ask_together(&mut worker, requests)
    });
}

#[test]
fn in_a_fork_each() {
    each_is_that_of_classic(1, Isolation::Fork, |host, _, requests| {
        requests
            .iter()
            .map(|request| {
                let said = finished(&host.fork().request(request));
                host.event();
                said
            })
            .collect()
    });
}
