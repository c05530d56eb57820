//! Development: what was written is in the next answer, and in the browser by itself.
//!
//! How soon is printed: `cargo test -p outboard-e2e --test development -- --nocapture edit`.

#![forbid(unsafe_code)]

use outboard_e2e::{Browser, Client, NamedServers, Request, Wire};
use std::path::Path;
use std::time::{Duration, Instant};

const TAG: &str = "<script src=\"/.outboard/live.js\" async></script>";

fn classic(settings: &str) -> NamedServers {
    let servers = NamedServers::new();
    let site = NamedServers::SITE;
    servers.describe("site", &format!("environment = \"development\"\n{site}{settings}"));
    servers
}

const WORKER: &str = "<?php
require __DIR__ . '/src/page.php';
while (frankenphp_handle_request(function () { header('Content-Type: text/html'); page(); }));
";

fn page(text: &str) -> String {
    format!("<?php\nfunction page() {{ echo '<h1>{text}</h1>'; }}\n")
}

/// A script that stays and its function in another file.
fn resident(settings: &str) -> NamedServers {
    let worker = "mode = \"worker\"\n[app.site.worker]\nscript = \"../worker.php\"\n";
    let servers = classic(&format!("{worker}{settings}"));
    std::fs::remove_file(servers.path("public/index.php")).expect("it is ours");
    servers.put("worker.php", WORKER);
    servers.put("src/page.php", &page("number 0"));
    servers
}

fn started(servers: &NamedServers) -> Client {
    servers.run("start", &["site"]).well();
    servers.client("site")
}

fn as_browser(target: &str) -> Request {
    Request::get(target).header("Accept", "text/html,*/*;q=0.8")
}

#[test]
fn an_edit_of_a_script_is_in_the_next_answer() {
    let servers = classic("");
    let mut client = started(&servers);
    for number in 0..20 {
        servers.put("public/index.php", &format!("<?php echo 'number {number}';"));
        client.get("/").expect(200).holding(&format!("number {number}"));
    }
}

#[test]
fn an_edit_of_a_script_that_stays_is_in_the_next_answer() {
    for settings in ["", "[development]\npolling = true\n"] {
        let servers = resident(settings);
        let mut client = started(&servers);
        for number in 1..8 {
            servers.put("src/page.php", &page(&format!("number {number}")));
            client.get("/").expect(200).holding(&format!("number {number}"));
        }
    }
}

#[test]
fn a_file_is_fresh_and_not_kept_by_the_browser() {
    let servers = classic("");
    let mut client = started(&servers);
    for number in 0..5 {
        servers.put("public/style.css", &format!("/* {number} */"));
        let answer = client.get("/style.css").expect(200);
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
        answer.saying(&format!("/* {number} */"));
    }
}

#[test]
fn there_is_one_worker_and_php_knows_the_environment() {
    let servers = classic("");
    servers.put("public/index.php", "<?php echo getenv('OUTBOARD_ENV');");
    started(&servers).get("/").expect(200).holding("development");
    let status = servers.status("site");
    assert_eq!(status["environment"], "development");
    assert_eq!(status["status"]["pools"][0]["workers"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_uncaught_error_is_shown_with_its_source() {
    let servers = classic("");
    let script = "<?php\n// <the line before>\nthrow new Exception('no <b>boat</b>');\n";
    servers.put("public/broken.php", script);
    servers.put("public/half.php", "<?php\necho '<h1>Half</h1>';\nundefined_function();\n");
    servers.put("public/syntax.php", "<?php\nfunction (\n");
    let mut client = started(&servers);
    let answer = client.send(&as_browser("/broken.php")).expect(500);
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    let page = answer.text();
    for words in [
        "no &lt;b&gt;boat&lt;/b&gt;",
        "public/broken.php:3",
        "&lt;the line before&gt;",
        "<span class=here><i>3</i>throw new Exception(",
        TAG,
    ] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    assert!(!page.contains("<b>boat"), "{page}");
    let plain = client.get("/broken.php").expect(500);
    assert_eq!(plain.header("content-type"), Some("text/plain; charset=utf-8"));
    plain.holding(">     3 | throw new Exception('no <b>boat</b>');");
    client.send(&as_browser("/half.php")).expect(500).holding("undefined_function()");
    client.send(&as_browser("/syntax.php")).expect(500).holding("Parse error");
}

#[test]
fn an_applications_own_page_for_an_error_stays() {
    let servers = classic("");
    let script = "<?php http_response_code(500); error_log('oh'); echo '{\"error\": 1}';";
    servers.put("public/api.php", script);
    started(&servers).send(&as_browser("/api.php")).expect(500).holding("{\"error\": 1}");
}

#[test]
fn in_production_nothing_is_shown_and_nothing_is_added() {
    let servers = NamedServers::with(&["site"]);
    servers.put("public/broken.php", "<?php throw new Exception('secret');");
    servers.put("public/page.html", "<h1>Page</h1>");
    let mut client = started(&servers);
    assert_eq!(client.send(&as_browser("/broken.php")).expect(500).text(), "");
    client.get("/page.html").expect(200).saying("<h1>Page</h1>");
    client.get("/.outboard/live.js").expect(404);
    client.get("/.outboard/changes").expect(404);
}

#[test]
fn code_that_fails_to_start_is_reported_until_it_starts() {
    let servers = resident("");
    let mut client = started(&servers);
    client.get("/").expect(200).holding("number 0");
    servers.put("src/page.php", "<?php\nfunction page( {\n");
    let shown = client.send(&as_browser("/")).expect(500).text();
    for words in ["Parse error", "src/page.php:2", "function page( {", TAG] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    servers.put("src/page.php", &page_that_throws());
    client.send(&as_browser("/")).expect(500).holding("at every request");
    servers.put("src/page.php", &page("number 1"));
    client.get("/").expect(200).holding("number 1");
}

fn page_that_throws() -> String {
    "<?php\nfunction page() { throw new Exception('at every request'); }\n".to_owned()
}

#[test]
fn an_edit_of_the_configuration_is_in_the_next_answer() {
    let servers = classic("");
    servers.put("other/index.php", "<?php echo 'another root';");
    let mut client = started(&servers);
    client.get("/").expect(200).holding("Hello from ");
    let text = std::fs::read_to_string(servers.path("conf/site.toml")).expect("it is ours");
    let moved = text.replace("../public", "../other");
    servers.describe("site", &moved);
    client.get("/").expect(200).holding("another root");
    servers.describe("site", &format!("{moved}\nnonsense = 1\n"));
    client.get("/").expect(500).holding("nonsense");
    servers.describe("site", &moved);
    client.get("/").expect(200).holding("another root");
}

#[test]
fn pages_get_the_script_and_nothing_else_does() {
    let servers = classic("");
    servers.put("public/page.html", "<h1>Page</h1>");
    servers.put("public/data.php", "<?php header('Content-Type: application/json'); echo '{}';");
    servers.put("public/long.php", "<?php header('Content-Length: 2'); echo 'ab';");
    servers.put("public/flushed.php", "<?php echo 'ab'; flush(); echo 'cd';");
    let mut client = started(&servers);
    client.get("/").expect(200).holding(TAG);
    client.get("/page.html").expect(200).saying(&format!("<h1>Page</h1>\n{TAG}\n"));
    client.get("/long.php").expect(200).saying(&format!("ab\n{TAG}\n"));
    client.get("/flushed.php").expect(200).saying(&format!("abcd\n{TAG}\n"));
    client.get("/data.php").expect(200).saying("{}");
    client.get("/missing.html").holding(TAG);
    client.get("/.outboard/live.js").expect(200).holding("new EventSource(");
}

#[test]
fn a_page_that_shall_not_reload_is_left_alone() {
    let servers = classic("[development]\nlive_reload = false\n");
    let text = started(&servers).get("/").expect(200).text();
    assert!(!text.contains("<script"), "{text}");
}

/// Reads events.
struct Ear(Wire);

impl Ear {
    fn of(servers: &NamedServers) -> Ear {
        let mut wire = Wire::open(servers.address("site"));
        wire.send("GET /.outboard/changes HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = wire.head();
        assert!(head.contains("Content-Type: text/event-stream"), "{head}");
        let mut ear = Ear(wire);
        assert_eq!(ear.chunk(), "retry: 200\n\n");
        ear
    }

    fn chunk(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend(self.0.exactly(1));
        }
        let line = String::from_utf8(line).expect("text");
        let len = usize::from_str_radix(line.trim(), 16).expect("the length of a chunk");
        let text = String::from_utf8(self.0.exactly(len)).expect("text");
        self.0.exactly(2);
        text
    }

    /// The next event, and how long it took.
    fn hears(&mut self, since: Instant) -> (String, Duration) {
        (self.chunk(), since.elapsed())
    }
}

#[test]
fn an_edit_is_announced_at_once_with_its_kind() {
    for settings in ["", "[development]\npolling = true\n"] {
        let servers = resident(settings);
        started(&servers);
        let mut ear = Ear::of(&servers);
        for (file, event) in
            [("src/page.php", "page"), ("public/a.css", "style"), ("public/a.js", "page")]
        {
            let began = Instant::now();
            servers.put(file, &page("changed"));
            let (shown, took) = ear.hears(began);
            assert!(shown.starts_with(&format!("event: {event}\n")), "{file}: {shown}");
            eprintln!("{settings:?} {file}: {} ms", took.as_millis());
        }
    }
}

#[test]
fn a_browser_that_listens_does_not_hold_up_a_stop() {
    let servers = classic("");
    started(&servers);
    let mut ear = Ear::of(&servers);
    servers.run("stop", &["site"]).well();
    assert_eq!(ear.chunk(), "", "the stream ends as it should");
}

/// The browser says when it has loaded a page or a style sheet; nothing is asked meanwhile.
#[test]
fn the_browser_shows_an_edit_by_itself() {
    let servers = resident("");
    servers.put("public/style.css", "h1 { color: rgb(1, 2, 3) }");
    let link = "<link rel=stylesheet href=/style.css>";
    servers.put("src/page.php", &page(&format!("first{link}")));
    started(&servers);
    let mut browser = Browser::start();
    browser.visit(&format!("http://{}/", servers.address("site")));
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots/development.png");
    let mut shows = |edit: &str, script: &str| {
        let began = Instant::now();
        // What was written before the page's script listens is announced when it does.
        browser.reloads_by(|| servers.put("src/page.php", edit));
        eprintln!("in the browser after {} ms", began.elapsed().as_millis());
        assert_eq!(browser.evaluate(script), true, "{}", browser.dom());
        browser.screenshot(&picture);
    };
    let text = |text: &str| format!("document.querySelector('h1').textContent === '{text}'");
    for number in 0..5 {
        shows(&page(&format!("edit {number}{link}")), &text(&format!("edit {number}")));
    }
    shows("<?php\nfunction page( {\n", "document.querySelector('.here') !== null");
    shows(&page(&format!("mended{link}")), &text("mended"));
    // A style sheet is exchanged in the page, which stays.
    browser.evaluate(
        "window.stays = true;
         window.styled = new Promise(done => document.querySelector('link').addEventListener('load', done));
         null",
    );
    let began = Instant::now();
    servers.put("public/style.css", "h1 { color: rgb(4, 5, 6) }");
    browser.evaluate("window.styled.then(() => null)");
    eprintln!("the style after {} ms", began.elapsed().as_millis());
    let color = "window.stays && getComputedStyle(document.querySelector('h1')).color";
    assert_eq!(browser.evaluate(color), "rgb(4, 5, 6)");
}
