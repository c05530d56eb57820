//! What a boot reads of its request, in whatever way: scripts that read it above `Outboard\snapshot()` give each visitor the
//! response of classic mode. Each way of the fixtures is a script; each script is served twice, with snapshots and
//! without, and the responses are compared.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request, eventually_within};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

const WAYS: &str = include_str!("../fixtures/snapshot_reads/ways.txt");
const PLACES: &str = include_str!("../fixtures/snapshot_reads/places.txt");
/// An array, the entry that visitors set, and its constant for `filter_input()`.
const ENTRIES: [(&str, &str, &str); 6] = [
    ("_SERVER", "HTTP_X_T", "INPUT_SERVER"),
    ("_COOKIE", "t", "INPUT_COOKIE"),
    ("_SERVER", "REMOTE_ADDR", "INPUT_SERVER"),
    ("_GET", "t", "INPUT_GET"),
    ("_POST", "t", "INPUT_POST"),
    ("_REQUEST", "t", "INPUT_GET"),
];
/// Scripts of an app, which boots one in two seconds.
const PER_APP: usize = 9;
const JIT: &str = "\"opcache.jit_buffer_size\" = \"16M\"\n\"opcache.jit_hot_func\" = \"2\"\n\"opcache.jit_hot_loop\" = \"2\"\n";

type Entry = (&'static str, &'static str, &'static str);

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

/// `text` with an entry in the place of its marks.
fn of_entry(text: &str, (array, key, input): Entry) -> String {
    text.replace("@A", array).replace("@K", key).replace("@I", input)
}

/// A script that reads above the snapshot and responds below it.
fn script(reads: &str) -> String {
    format!(
        "<?php $seen = null; $boot = getmypid(); isset($_SERVER, $_REQUEST, $_ENV);\n{reads}\nOutboard\\snapshot();\n\
         header('X-Rewound: ' . (int) (getmypid() !== $boot)); echo json_encode($seen);"
    )
}

/// Every way, with an entry that it can read, each in its turn.
fn ways() -> Vec<String> {
    let way = |(number, line): (usize, &'static str)| {
        let (code, arrays) = line.split_once(" -> ").unwrap_or((line, ""));
        let fits = |entry: &&Entry| arrays.is_empty() || arrays.split(' ').any(|a| a == entry.0);
        let entry = ENTRIES.iter().cycle().skip(number).find(fits).expect("a known array");
        script(&of_entry(code, *entry))
    };
    lines(WAYS).enumerate().map(way).collect()
}

/// Every place, with a read that is right in any of them.
fn places() -> Vec<String> {
    let reads = ["return $@A['@K'] ?? 'none';", "$n = '@A'; return $GLOBALS[$n]['@K'] ?? 'none';"];
    let place = |(number, line): (usize, &'static str)| {
        let entry = ENTRIES[number % ENTRIES.len()];
        script(&line.replace("@R", &of_entry(reads[number / 2 % 2], entry)))
    };
    lines(PLACES).enumerate().map(place).collect()
}

/// Combinations of ways and places, by this seed.
fn combined(mut seed: u64, count: usize) -> Vec<String> {
    let mut next = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("31 bits") % bound
    };
    let plain = |line: &&str| {
        !line.contains("function ") && !line.contains(" -> ") && !line.contains("compact")
    };
    let ways: Vec<_> = lines(WAYS).filter(plain).collect();
    let places: Vec<_> = lines(PLACES).collect();
    let mut one = || {
        let (way, place, entry) = (next(ways.len()), next(places.len()), next(ENTRIES.len()));
        let reads = format!("{} return $seen;", of_entry(ways[way], ENTRIES[entry]));
        script(&places[place].replace("@R", &reads))
    };
    (0..count).map(|_| one()).collect()
}

/// Requests for a path that differ in what the entries are, and some that do not.
fn visitors(path: &str) -> Vec<Request> {
    let mut all = Vec::new();
    for number in 0..20 {
        let value = format!("visitor-{number}");
        let query = if number % 5 == 1 { format!("?t={value}") } else { String::new() };
        let target = format!("{path}{query}");
        let mut request = match number % 7 {
            3 => Request::form(&target, &[("t", &value)]),
            6 => Request::new("POST", &target).header("Content-Length", "0"),
            _ => Request::get(&target),
        };
        request = request.header("Host", ["a.test", "b.test"][number / 10]);
        request = request.header("X-Forwarded-For", &format!("198.51.100.{}", number / 4));
        if number % 4 == 2 {
            request = request.header("Cookie", &format!("t={value}; PHPSESSID={value}"));
        }
        if number % 6 == 5 {
            request = request.header("X-T", &value).header("User-Agent", "Visitor/1.0");
        }
        all.push(request);
    }
    all
}

/// Serves the scripts in apps with these settings of PHP and without snapshots, and compares them. Returns how many of the
/// scripts have handled requests from a snapshot.
fn compare(scripts: &[String], php: &str, ini: &str) -> usize {
    let root = Docroot::of("snapshot_reads");
    let (mut text, mut paths) = ("threads = 1\nlisten = \"127.0.0.1:0\"\ntrusted_proxies = [\"127.0.0.1\"]\n[log.access]\npath = \"off\"\n".to_owned(), Vec::new());
    let browsers =
        root.beside().file("browscap.ini", "[Visitor/1.0]\nBrowser=Visitor\n[*]\nBrowser=Other\n");
    let mut app = |name: &str, pool: &str| {
        let ini = format!(
            "register_argc_argv = true\nbrowscap = {browsers:?}\n\"session.save_path\" = \"/tmp\"\n{ini}"
        );
        let head = format!("[app.{name}]\npath = \"/{name}\"\nroot = \"www\"\nsandbox = \"off\"\n");
        write!(
            text,
            "{head}[app.{name}.php]\n{php}[app.{name}.php.env]\nOUTBOARD_VERIFY_SNAPSHOT = \"1\"\n[app.{name}.php.ini]\n{ini}[app.{name}.pool]\n{pool}\n"
        )
        .expect("memory");
    };
    app("classic", "min = 1\nmax = 1\nmax_snapshots = 0");
    root.beside().file("preload.php", "<?php require __DIR__ . '/www/preloaded.php';");
    root.put("preloaded.php", preloaded());
    root.writable("made");
    for (number, script) in scripts.iter().enumerate() {
        let name = format!("made/{number}.php");
        root.put(&name, script);
        if number % PER_APP == 0 {
            app(&format!("a{}", number / PER_APP), "min = 1\nmax = 2\nmax_snapshots = 60");
        }
        paths.push((format!("/a{}/{name}", number / PER_APP), format!("/classic/{name}")));
    }
    let site = Configured::start(root, &text);
    for ((_, classic), script) in paths.iter().zip(scripts) {
        let status = site.client().send(&Request::get(classic).header("Host", "a.test")).status;
        assert_eq!(status, 200, "{script}");
    }
    let settled = || {
        let status = site.status();
        let all = status["snapshots"].as_array().expect("a list").iter();
        let is_settled =
            |one: &&serde_json::Value| one["snapshots"] != 0 || one["refused_because"].is_string();
        all.filter(is_settled)
            .map(|one| one["script"].as_str().expect("a name").to_owned())
            .collect::<BTreeSet<_>>()
    };
    eventually_within(Duration::from_secs(120), "each script has a snapshot or a reason", || {
        let settled = settled();
        let mut open = paths.iter().filter(|(path, _)| !settled.contains(path)).peekable();
        let is_done = open.peek().is_none();
        open.for_each(|(path, _)| {
            drop(site.client().send(&Request::get(path).header("Host", "a.test")))
        });
        is_done
    });
    let mut rewound = 0;
    for ((path, classic), script) in paths.iter().zip(scripts) {
        let mut count = 0;
        for (request, expected) in visitors(path).iter().zip(visitors(classic)) {
            let answer = site.client().send(request);
            count += usize::from(answer.header("X-Rewound") == Some("1"));
            let expected = site.client().send(&expected);
            assert_eq!(
                (answer.status, answer.text()),
                (expected.status, expected.text()),
                "{script}\n{request:?}"
            );
        }
        rewound += usize::from(count > 0);
    }
    println!("{} scripts, {rewound} with snapshots", scripts.len());
    rewound
}

/// Reads in functions that are preloaded, which are compiled before anything of a boot is known.
fn preloaded() -> String {
    let reads = |(number, (array, key, _)): (usize, &Entry)| {
        format!(
            "class Preloaded{number} {{ static function plain() {{ return $GLOBALS['x'] = ${array}['{key}'] ?? 'none'; }}\n\
             static function named($n = '{array}') {{ return $GLOBALS[$n]['{key}'] ?? 'none'; }}\n\
             static function filter() {{ return filter_input(INPUT_GET, 't'); }} }}\n"
        )
    };
    format!("<?php\n{}", ENTRIES.iter().enumerate().map(reads).collect::<String>())
}

/// Scripts that call them.
fn calls() -> Vec<String> {
    let of = |method| {
        (0..ENTRIES.len()).map(move |n| script(&format!("$seen = Preloaded{n}::{method}();")))
    };
    of("plain").chain(of("named")).chain(of("filter").take(1)).collect()
}

#[test]
fn all_ways_to_read_a_request_are_those_of_classic_mode() {
    assert!(compare(&ways(), "", "") >= 20);
}

#[test]
fn all_places_to_read_a_request_are_those_of_classic_mode() {
    assert!(compare(&[places(), combined(20_261_126, 18)].concat(), "", "") >= 10);
}

#[test]
fn preloaded_code_reads_what_classic_mode_reads() {
    let preload = "preload = \"preload.php\"\n";
    assert!(compare(&calls(), preload, "") >= 5);
    compare(&calls(), preload, &format!("{JIT}\"opcache.jit\" = \"function\"\n"));
}

#[test]
fn compiled_code_reads_what_classic_mode_reads() {
    let some: Vec<_> = [ways(), places()].concat().into_iter().step_by(7).collect();
    for jit in ["function", "tracing"] {
        compare(&some, "", &format!("{JIT}\"opcache.jit\" = \"{jit}\"\n"));
    }
}
