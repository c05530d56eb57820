//! Tokens and clocks after a snapshot: no worker repeats what another, the boot or an earlier request has drawn, and
//! the time is that of the request.
//!
//! `OUTBOARD_TOKENS=1000000` draws as many in each way of isolation; by default it is a tenth.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Configured, Docroot, Request, Scratch, another_second};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

const WORKERS: usize = 4;

/// Tokens of each kind in a response.
const DRAWN: usize = 20;

/// Where a token consists of several numbers, one has too few bits for so many without a repetition.
const KINDS: [&str; 19] = [
    "mt_rand() . '-' . mt_rand() . '-' . mt_rand()",
    "rand() . '-' . rand() . '-' . rand()",
    "lcg_value() . '-' . lcg_value() . '-' . lcg_value()",
    "uniqid('', true)",
    "bin2hex(random_bytes(12))",
    "random_int(0, PHP_INT_MAX) . '-' . random_int(0, PHP_INT_MAX)",
    "bin2hex(openssl_random_pseudo_bytes(12))",
    "session_create_id()",
    "str_shuffle('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ')",
    "implode('-', array_rand(range(0, 9999), 6))",
    "(new Random\\Randomizer())->getBytesFromString",
    "bin2hex((new Random\\Engine\\Secure())->generate())",
    "bin2hex((new Random\\Engine\\Mt19937())->generate() . (new Random\\Engine\\Mt19937())->generate() . (new Random\\Engine\\Mt19937())->generate())",
    "bin2hex((new Random\\Engine\\Xoshiro256StarStar())->generate())",
    "bin2hex((new Random\\Engine\\PcgOneseq128XslRr64())->generate())",
    "bin2hex($mt->generate() . $mt->generate() . $mt->generate())",
    "bin2hex($xoshiro->generate())",
    "bin2hex($pcg->getBytes(12))",
    "bin2hex(sodium_crypto_secretbox_keygen())",
];

/// With rewinds, or with "fork" where none is possible.
fn serving(isolation: &str, code: &str) -> Configured {
    let forbid = if isolation == "fork" { "OUTBOARD_FORBID_REWIND = \"1\"\n" } else { "" };
    let empty = Scratch::new("empty");
    let docroot = Docroot::copy(empty.path());
    docroot.put("worker.php", format!("<?php {code}"));
    let text = format!(
        "listen = \"127.0.0.1:0\"\n\
         [log.access]\npath = \"off\"\n\
         [pool]\nmin = {WORKERS}\nmax = {WORKERS}\nloopback_slots = 0\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\n\
         [app.site.worker]\nscript = \"www/worker.php\"\nisolation = \"rewind\"\n\
         [app.site.php.env]\n{forbid}"
    );
    Configured::start(docroot, &text)
}

/// A script that draws tokens of each kind in the boot, and in each request.
fn drawing() -> String {
    let draws = KINDS.map(|kind| match kind.strip_suffix("->getBytesFromString") {
        Some(randomizer) => format!("fn () => bin2hex({randomizer}->getBytes(12))"),
        None => format!("fn () => {kind}"),
    });
    format!(
        "$mt = new Random\\Engine\\Mt19937(); $xoshiro = new Random\\Engine\\Xoshiro256StarStar(null);
         $pcg = new Random\\Randomizer(new Random\\Engine\\PcgOneseq128XslRr64());
         $kinds = [{}];
         $draw = function () use ($kinds) {{
             $text = '';
             foreach ($kinds as $number => $kind) for ($i = 0; $i < {DRAWN}; $i++) $text .= \"$number \" . $kind() . \"\\n\";
             return $text . 'hash ' . password_hash('secret', PASSWORD_BCRYPT, ['cost' => 4]) . \"\\n\";
         }};
         $boot = $draw(); Outboard\\snapshot(); echo $_SERVER['REQUEST_URI'] === '/boot' ? $boot : $draw();",
        draws.join(", ")
    )
}

/// Draws this many tokens; each token with the number of times that it was seen.
fn draw(site: &Configured, wanted: usize) -> HashMap<String, u32> {
    let seen = Mutex::new(HashMap::new());
    let note = |text: String| {
        let mut seen = seen.lock().unwrap();
        text.lines().for_each(|token| *seen.entry(token.to_owned()).or_insert(0) += 1);
    };
    note(site.client().send(&Request::get("/boot")).expect(200).text());
    let requests = AtomicUsize::new(wanted.div_ceil(KINDS.len() * DRAWN));
    let one_more = |left| if left > 0 { Some(left - 1) } else { None };
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let mut client = Client::new(site.address());
                while requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
                {
                    note(client.send(&Request::get("/")).expect(200).text());
                }
            });
        }
    });
    seen.into_inner().unwrap()
}

#[test]
fn no_token_is_drawn_twice() {
    let wanted = std::env::var("OUTBOARD_TOKENS").ok().and_then(|text| text.parse().ok());
    let wanted = wanted.unwrap_or(100_000);
    for isolation in ["rewind", "fork"] {
        let seen = draw(&serving(isolation, &drawing()), wanted);
        assert!(seen.len() >= wanted, "{}", seen.len());
        let repeated: Vec<_> = seen.iter().filter(|(_, times)| **times > 1).take(20).collect();
        assert!(repeated.is_empty(), "{isolation}: {repeated:?}");
    }
}

/// A seed makes numbers repeatable, which the program has asked for.
#[test]
fn a_seeded_engine_draws_what_its_seed_says() {
    let code = "$engine = new Random\\Engine\\Mt19937(7); Outboard\\snapshot(); echo bin2hex($engine->generate());";
    for isolation in ["rewind", "fork"] {
        let site = serving(isolation, code);
        let ask = || site.client().send(&Request::get("/")).expect(200).text();
        let first = ask();
        assert_eq!([ask(), ask()], [first.clone(), first]);
    }
}

/// What a time loses as a number of JSON.
const ROUNDED_S: f64 = 0.001;

fn wall_s() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The clock of hrtime().
fn monotonic_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

#[test]
fn clocks_are_those_of_the_request() {
    let code = "date_default_timezone_set('Asia/Tokyo');
        $now = fn () => [
            time(), microtime(true), hrtime(true) / 1e9, $_SERVER['REQUEST_TIME'] ?? 0, $_SERVER['REQUEST_TIME_FLOAT'] ?? 0, strtotime('now'),
            (int) date('U'), (new DateTime())->getTimestamp(), (int) (new DateTimeImmutable('now'))->format('U'), mktime((int) date('H')), getdate()[0],
            gettimeofday()['sec'], idate('U'), DateTime::createFromFormat('H', '12')->getTimestamp() - strtotime('12:00') + time(),
        ];
        $boot = $now(); Outboard\\snapshot();
        echo json_encode([$boot, $now(), date_default_timezone_get(), (new DateTime())->format('e')]);
        date_default_timezone_set('Europe/Berlin');";
    for isolation in ["rewind", "fork"] {
        let site = serving(isolation, code);
        for _ in 0..2 {
            // So that a time of the boot or of the request before is less.
            another_second();
            let before = [wall_s().floor(), monotonic_s()];
            let text = site.client().send(&Request::get("/")).expect(200).text();
            let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                (&answer[2], &answer[3]),
                (&"Asia/Tokyo".into(), &"Asia/Tokyo".into()),
                "{text}"
            );
            let after = [wall_s(), monotonic_s()];
            for (number, value) in answer[1].as_array().unwrap().iter().enumerate() {
                let (clock, value) = (usize::from(number == 2), value.as_f64().unwrap());
                let is_right = before[clock] <= value && value <= after[clock] + ROUNDED_S;
                assert!(is_right, "{isolation}: clock {number}, {before:?} to {after:?}: {text}");
            }
        }
    }
}
