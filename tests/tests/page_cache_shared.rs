//! Pages and purges that two gateways share by a Redis between them.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Cable, Configured, Connection, Docroot, Protocol, Redis, Request, Response, eventually,
};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

/// A gateway, and its way to Redis.
struct Gateway {
    site: Configured,
    cable: Cable,
}

const SHARED: &str = "the pages of the page cache are shared";
const NOT_SHARED: &str = "the pages of the page cache are not shared";

impl Gateway {
    /// One whose pages were made `runs` times before, so that it is known whose page a response
    /// is.
    fn start(redis: &Redis, runs: usize) -> Gateway {
        let gateway = Gateway::serving(Cable::to(redis.socket()), runs);
        gateway.site.logs(&[SHARED]);
        gateway
    }

    fn serving(cable: Cable, runs: usize) -> Gateway {
        let docroot = Docroot::of("page_cache");
        let state = docroot.writable("state");
        let count = state.join("count");
        std::fs::write(&count, format!("{runs}\n")).unwrap();
        // PHP runs as another user.
        std::fs::set_permissions(&count, Permissions::from_mode(0o666)).unwrap();
        let site = Configured::start(docroot, &text(&cable));
        Gateway { site, cable }
    }

    fn send(&self, request: &Request) -> Response {
        let mut connection = Connection::open(self.site.address());
        // By one name, whatever port the gateway has.
        connection.send(&request.to_bytes("pages.test")).expect("the server reads");
        connection.response().expect("it answers")
    }

    /// What the page says, and what the cache had to do with it.
    fn get(&self, target: &str) -> (String, String) {
        let answer = self.send(&Request::get(target)).expect(200);
        let said = answer.header("x-cache").expect("every answer says it").to_owned();
        (answer.text().trim_end().to_owned(), said)
    }

    /// Whether there is a page that could be used.
    fn keeps(&self, target: &str) -> bool {
        let request = Request::get(target).header("Cache-Control", "only-if-cached");
        self.send(&request).status == 200
    }

    #[track_caller]
    fn purge(&self, arguments: &[&str]) -> String {
        let output = self.site.command("cache", &[&["purge"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn shared(&self) -> Value {
        let output = self.site.command("cache", &["stats", "--json"]);
        let stats: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        stats["apps"]["site"]["shared"].clone()
    }

    #[track_caller]
    fn wait_for(&self, name: &str, number: u64) {
        eventually(name, || {
            let shared = self.shared();
            if shared[name].as_u64() >= Some(number) { Ok(()) } else { Err(shared) }
        });
    }

    /// Waits until Redis has so many pages of this gateway.
    #[track_caller]
    fn wait_for_put(&self, number: u64) {
        self.wait_for("stores", number);
        // Redis does one command after the other, and this one it confirms.
        self.purge(&["/nothing"]);
    }

    #[track_caller]
    fn wait_until_away(&self) {
        eventually("Redis is away", || !self.shared()["away"].is_null());
    }

    #[track_caller]
    fn wait_until_there(&self) {
        eventually("Redis is there", || self.shared()["away"].is_null());
    }
}

fn text(cable: &Cable) -> String {
    let (address, password) = (cable.address(), Redis::PASSWORD);
    Configured::text(&format!(
        "[app.site.page_cache]\nmode = \"on\"\npurge_from = [\"127.0.0.1\"]\n\
         [app.site.page_cache.shared]\nserver = \"redis://:{password}@{address}/2\"\n\
         timeout = \"20s\"\n"
    ))
}

const PAGE: &str = "/page.php/one?header[]=Cache-Control:max-age=600&header[]=Cache-Tag:post-1";

fn run(number: usize, said: &str) -> (String, String) {
    (format!("run {number} for visitor"), said.to_owned())
}

#[test]
fn a_page_is_rendered_once_for_all_gateways() {
    let redis = Redis::start();
    let (first, second) = (Gateway::start(&redis, 10), Gateway::start(&redis, 20));
    assert_eq!(first.get(PAGE), run(11, "MISS"));
    first.wait_for_put(1);
    assert_eq!(second.get(PAGE), run(11, "HIT"));
    assert_eq!(second.get("/page.php/other"), run(21, "MISS"));
    assert_eq!(second.shared()["hits"], 1);
    // A gateway that comes later has it too.
    assert_eq!(Gateway::start(&redis, 30).get(PAGE), run(11, "HIT"));
}

#[test]
fn a_variant_is_taken_by_those_only_whom_it_answers() {
    let redis = Redis::start();
    let (first, second) = (Gateway::start(&redis, 10), Gateway::start(&redis, 20));
    let target = "/page.php?header[]=Cache-Control:max-age=600&header[]=Vary:X-Kind";
    let asked = |kind: &str| Request::get(target).header("X-Kind", kind);
    for (number, kind) in [(11, "red"), (12, "blue")] {
        let answer = first.send(&asked(kind)).expect(200);
        assert!(answer.text().starts_with(&format!("run {number} ")), "{}", answer.text());
    }
    first.wait_for_put(2);
    for (number, kind) in [(12, "blue"), (11, "red"), (21, "green")] {
        let answer = second.send(&asked(kind)).expect(200);
        assert!(answer.text().starts_with(&format!("run {number} ")), "{kind}: {}", answer.text());
    }
}

#[test]
fn a_purge_takes_effect_in_the_shared_tier_before_it_returns() {
    let redis = Redis::start();
    let (first, second) = (Gateway::start(&redis, 10), Gateway::start(&redis, 20));
    let own = format!("{}://pages.test{PAGE}", Protocol::of_run().scheme());
    for (number, arguments) in
        [vec!["--tag", "post-1"], vec!["--prefix", "/page.php/"], vec![&own], vec!["--all"]]
            .into_iter()
            .enumerate()
    {
        let (made, put) = (11 + number, 1 + number as u64);
        assert_eq!(first.get(PAGE), run(made, "MISS"));
        first.wait_for("stores", put);
        assert_eq!(first.purge(&arguments), "1 purged\n");
        // It has never had the page, and Redis still holds it.
        let again = second.get(PAGE);
        assert_eq!(again, run(21 + number, "MISS"), "{arguments:?}");
        second.purge(&arguments);
        first.wait_for("purges_received", put);
    }
}

#[test]
fn a_purge_reaches_the_memory_of_every_gateway() {
    let redis = Redis::start();
    let (first, second) = (Gateway::start(&redis, 10), Gateway::start(&redis, 20));
    first.get(PAGE);
    first.wait_for("stores", 1);
    second.get(PAGE);
    first.purge(&["--tag", "post-1"]);
    second.wait_for("purges_received", 1);
    assert!(!second.keeps(PAGE));
    assert_eq!(first.shared()["purges_received"], 0, "its own it does not hear");
    // By HTTP and softly: there is something to serve meanwhile.
    second.get(PAGE);
    let soft = Request::new("PURGE", PAGE).header("Soft-Purge", "1");
    let answer = first.send(&soft).expect(200);
    assert!(answer.text().contains("\"confirmed\":true"), "{}", answer.text());
    // Both schemes.
    second.wait_for("purges_received", 3);
    assert_eq!(second.get(PAGE).1, "STALE");
}

#[test]
fn a_reconnected_gateway_serves_no_purged_page() {
    let redis = Redis::start();
    let (first, second) = (Gateway::start(&redis, 10), Gateway::start(&redis, 20));
    let other = "/page.php/two?header[]=Cache-Control:max-age=600";
    second.get(PAGE);
    second.get(other);
    second.cable.cut();
    second.site.logs(&[NOT_SHARED]);
    second.wait_until_away();
    first.purge(&["--tag", "post-1"]);
    // With memory alone it goes on.
    assert_eq!(second.get(PAGE), run(21, "HIT"));
    assert_eq!(second.get("/page.php/three"), run(23, "MISS"));
    second.cable.mend();
    second.wait_until_there();
    assert!(!second.keeps(PAGE));
    assert!(second.keeps(other), "what was not purged is kept");
}

#[test]
fn purges_while_disconnected_are_sent_on_reconnection() {
    let redis = Redis::start();
    let (first, second) = (Gateway::start(&redis, 10), Gateway::start(&redis, 20));
    second.get(PAGE);
    second.wait_for("stores", 1);
    first.cable.cut();
    first.wait_until_away();
    let said = first.purge(&["--tag", "post-1"]);
    assert_eq!(
        said,
        "0 purged; the shared server is away: other gateways follow once it is back\n"
    );
    assert!(second.keeps(PAGE));
    first.cable.mend();
    second.wait_for("purges_received", 1);
    assert!(!second.keeps(PAGE));
    first.wait_until_there();
    assert_eq!(first.get(PAGE), run(11, "MISS"));
}

#[test]
fn a_gateway_starts_and_serves_without_redis() {
    let redis = Redis::start();
    let cable = Cable::to(redis.socket());
    cable.cut();
    let gateway = Gateway::serving(cable, 10);
    gateway.site.logs(&[NOT_SHARED]);
    assert_eq!(gateway.get(PAGE), run(11, "MISS"));
    assert_eq!(gateway.get(PAGE), run(11, "HIT"));
    let output = gateway.site.command("cache", &["stats"]);
    let stats = String::from_utf8(output.stdout).unwrap();
    assert!(stats.contains("shared    not now: "), "{stats}");
    let status = gateway.site.command("status", &[]);
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("page cache   of site not shared: "), "{status}");
    gateway.cable.mend();
    gateway.wait_until_there();
    // What it kept may have been purged before it came.
    assert_eq!(gateway.get(PAGE), run(12, "MISS"));
}

#[test]
fn a_redis_that_lost_its_data_is_no_longer_trusted() {
    let redis = Redis::start();
    let (first, second) = (Gateway::start(&redis, 10), Gateway::start(&redis, 20));
    first.get(PAGE);
    first.wait_for_put(1);
    second.get(PAGE);
    redis.tell(&["FLUSHALL"]);
    for gateway in [&first, &second] {
        gateway.site.logs(&[NOT_SHARED, "it has lost what was stored there"]);
        gateway.wait_until_there();
        // Each thread has a connection, and learns of it there.
        eventually("the page is gone", || !gateway.keeps(PAGE));
    }
    assert_eq!(second.get(PAGE), run(21, "MISS"));
}

#[test]
fn a_reload_makes_the_pages_of_the_release_before_stale_for_all() {
    let redis = Redis::start();
    let (first, second) = (Gateway::start(&redis, 10), Gateway::start(&redis, 20));
    first.get(PAGE);
    first.wait_for("stores", 1);
    second.get(PAGE);
    let reloaded = first.site.command("reload", &[]);
    assert!(reloaded.status.success(), "{reloaded:?}");
    second.wait_for("purges_received", 1);
    first.wait_until_there();
    // What the second makes of its stale page it shares again.
    assert_eq!(first.get(PAGE), run(12, "MISS"));
    assert_eq!(second.get(PAGE).1, "STALE");
}

#[test]
fn a_wrong_password_is_logged() {
    let redis = Redis::start();
    let cable = Cable::to(redis.socket());
    let right = text(&cable);
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let site = Configured::start(docroot, &right.replace(Redis::PASSWORD, "guessed"));
    site.logs(&[NOT_SHARED, "WRONGPASS"]);
    assert!(!site.child().output().contains("guessed"));
}
