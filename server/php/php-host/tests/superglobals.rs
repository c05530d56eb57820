//! Superglobals in worker mode equal those of classic mode, for every kind of request and whenever
//! the file that mentions them is compiled.

mod driver;

use driver::{
    Host, RequestSpec, TempDir, Worker, finished, get, post, settings, settings_of_worker,
};
use outboard_ring::control::Isolation;
use outboard_ring::frame::FrameKind;
use std::collections::BTreeMap;

/// Expressions that print a superglobal, for the body of a function.
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

/// When the file that mentions the superglobal is compiled.
const MOMENTS: [&str; 3] = ["boot", "first", "later"];

/// A worker script that prints the result of the file `PROBE.MOMENT.ROUND.php`, which a request
/// header names. It stores the function that the file returns, and mentions no superglobal itself.
/// Requests of a round meet before and after the file is compiled.
const SCRIPT: &str = r#"<?php
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

/// The kinds of requests.
fn request_kinds(script: &str, probe: &str) -> [RequestSpec; 3] {
    let upload = "--b\r\nContent-Disposition: form-data; name=\"p\"\r\n\r\n5\r\n\
        --b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\n\r\nhello\r\n--b--\r\n";
    [
        get(script).query("g=1&r=g"),
        post(script, "application/x-www-form-urlencoded", "p=4&r=p").query("g=2"),
        post(script, "multipart/form-data; boundary=b", upload),
    ]
    .map(|request| request.header("Cookie", "c=3").header("X-Probe", probe))
}

/// The responses of classic mode to each kind.
fn of_classic(folder: &TempDir) -> BTreeMap<&'static str, [String; 3]> {
    let mut host = Host::with(settings());
    let mut worker = host.fork();
    let mut texts = BTreeMap::new();
    for (name, _) in PROBES {
        let file = format!("{name}.php");
        folder.write(&file, &format!("<?php echo (require __DIR__ . '/{name}.boot.0.php')();"));
        let requests = request_kinds(&file, name).map(|request| request.root(&folder.0));
        texts.insert(name, requests.map(|request| finished(&worker.request(&request))));
    }
    texts
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
    let code = SCRIPT.replace("CONCURRENCY", &concurrency.to_string());
    let code = code.replace("PRELOADS", if preloads { "true" } else { "false" });
    let mut settings = settings_of_worker(folder.write("worker.php", &code));
    let worker = settings.worker.as_mut().unwrap();
    (worker.concurrency, worker.isolation) = (concurrency, isolation);
    Host::with(settings)
}

/// Sends the requests concurrently and returns the responses.
fn request_together(worker: &mut Worker, requests: &[RequestSpec]) -> Vec<String> {
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

/// Compares all probes; `request` sends three requests, the first of which compiles the file.
fn assert_equal_to_classic(
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
            let mut requests = request_kinds("worker.php", &file);
            requests.rotate_left(first);
            let mut expected_texts = expected[name].clone();
            expected_texts.rotate_left(first);
            assert_eq!(request(&mut host, moment == "later", &requests), expected_texts, "{file}");
        }
    }
}

#[test]
fn sequential_requests_find_the_classic_superglobals() {
    assert_equal_to_classic(1, Isolation::Reset, |host, is_later, requests| {
        let mut worker = host.fork();
        if is_later {
            request_kinds("worker.php", "none")
                .iter()
                .for_each(|request| _ = worker.request(request));
        }
        requests.iter().map(|request| finished(&worker.request(request))).collect()
    });
}

#[test]
fn concurrent_requests_find_the_classic_superglobals() {
    assert_equal_to_classic(3, Isolation::Reset, |host, is_later, requests| {
        let mut worker = host.fork();
        if is_later {
            request_kinds("worker.php", "none")
                .iter()
                .for_each(|request| _ = worker.request(request));
        }
        request_together(&mut worker, requests)
    });
}

#[test]
fn forks_find_the_classic_superglobals() {
    assert_equal_to_classic(1, Isolation::Fork, |host, _, requests| {
        requests
            .iter()
            .map(|request| {
                let texts = finished(&host.fork().request(request));
                host.event();
                texts
            })
            .collect()
    });
}
