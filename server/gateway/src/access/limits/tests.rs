//! Limits of rules and of scripts, over reloads, and with a server that gateways share, or without it.

use super::*;
use crate::testing::{Site, in_loop, wait_for};
use outboard_config::Config;
use outboard_reactor::{Listener, spawn};
use outboard_resp::{Limits, Reader, Value};
use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

const RULE: &str = "[[app.site.access]]\nrate_limit = \"2/h\"\n";
const SCRIPT: &str = "[app.site.rate_limits.login]\nrate = \"3/h\"\n";
const SHARED: &str = "[app.site.rate_limits.login]\nrate = \"8/h\"\nshared = true\n";

fn config(keys: &str) -> Config {
    let text = format!("[app.site]\nroot = \"/tmp\"\n{keys}");
    Config::parse(&text, Path::new("/tmp/outboard.toml"))
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// The limits of a generation with these keys.
fn open(keys: &str, access: &SharedAccess) -> Rc<RateLimits> {
    RateLimits::open(&config(keys).apps[0], access, None)
}

fn client() -> ClientKey<'static> {
    ClientKey::Value(b"a")
}

fn take(limit: &Limit, cost: u32) -> Taken {
    limit.take(&client(), KeyHash::of(client()), cost)
}

/// How many of these attempts to take a token are admitted, when no server is to be asked.
fn admitted(limit: &Limit, attempts: u32) -> u32 {
    let admitted = (0..attempts).filter(|_| match take(limit, 1) {
        Taken::Known(spending) => spending.is_admitted,
        Taken::Ask(_) => panic!("the gateway decides by itself"),
    });
    admitted.count().try_into().unwrap()
}

#[test]
fn a_limit_belongs_to_its_rule_or_to_its_name() {
    in_loop(async {
        let rules = format!("[[app.site.access]]\npath = \"/a/\"\ndeny = [\"::/0\"]\n{RULE}");
        let limits = open(&format!("{rules}{SCRIPT}"), &SharedAccess::default());
        let burst = |limit: Option<&Limit>| limit.map(|limit| limit.rate().burst());
        assert_eq!([0, 1, 2].map(|rule| burst(limits.of_rule(rule))), [None, Some(2), None]);
        let names = ["login", "LOGIN", "logi", ""];
        assert_eq!(names.map(|name| burst(limits.of_scripts(name))), [Some(3), None, None, None]);
    });
}

#[test]
fn a_look_takes_no_tokens_and_knows_what_was_taken() {
    in_loop(async {
        let limits = open(SCRIPT, &SharedAccess::default());
        let limit = limits.of_scripts("login").unwrap();
        assert!((0..9).all(|_| limit.look(&client(), 3).is_admitted));
        assert!(matches!(take(limit, 2), Taken::Known(spending) if spending.remaining == 1));
        assert!(limit.look(&client(), 1).is_admitted);
        let too_many = limit.look(&client(), 2);
        assert!(!too_many.is_admitted && too_many.retry_ns > 0, "{too_many:?}");
        assert!(limit.look(&ClientKey::Value(b"b"), 3).is_admitted, "another client");
    });
}

#[test]
fn equal_limits_of_a_path_count_separately() {
    in_loop(async {
        let access = SharedAccess::default();
        let limits = open(&format!("{RULE}{RULE}"), &access);
        assert_eq!(admitted(limits.of_rule(0).unwrap(), 9), 2);
        assert_eq!(admitted(limits.of_rule(1).unwrap(), 1), 1);
        // Each is found again.
        let reloaded = open(&format!("{RULE}{RULE}"), &access);
        assert_eq!(admitted(reloaded.of_rule(0).unwrap(), 9), 0);
        assert_eq!(admitted(reloaded.of_rule(1).unwrap(), 9), 1);
    });
}

#[test]
fn a_reload_gives_new_tokens_only_of_a_limit_that_changes() {
    in_loop(async {
        let access = SharedAccess::default();
        let before = open(&format!("{RULE}{SCRIPT}"), &access);
        assert_eq!(admitted(before.of_rule(0).unwrap(), 9), 2);
        assert_eq!(admitted(before.of_scripts("login").unwrap(), 9), 3);
        // The rule is the second one now, and the script's limit has another rate.
        let other = "[[app.site.access]]\npath = \"/a/\"\nrate_limit = \"2/h\"\n";
        let keys = format!("{other}{RULE}{SCRIPT}").replace("3/h", "4/h");
        let after = open(&keys, &access);
        assert_eq!(admitted(after.of_rule(0).unwrap(), 9), 2);
        assert_eq!(admitted(after.of_rule(1).unwrap(), 9), 0);
        assert_eq!(admitted(after.of_scripts("login").unwrap(), 9), 4);
    });
}

/// The server of shared limits, which grants all tokens that it is asked for.
struct Server {
    port: u16,
    /// For each bucket of its batches, tokens that were taken, and those that were asked for.
    heard: Rc<RefCell<Vec<(u64, u64)>>>,
    /// It closes its connection instead of a reply, and accepts no other one.
    is_gone: Rc<Cell<bool>>,
}

impl Server {
    fn start() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = socket.local_addr().unwrap().port();
        let listener = Listener::new(socket.into()).unwrap();
        let (heard, is_gone) = (Rc::<RefCell<Vec<_>>>::default(), Rc::<Cell<bool>>::default());
        let (to, ends) = (heard.clone(), is_gone.clone());
        spawn(async move {
            let stream = listener.accept().await.unwrap().stream;
            let (mut reader, mut input) =
                (Reader::new(Limits { bytes: 1 << 20, values: 1 << 10 }), Vec::new());
            loop {
                input.reserve(16 << 10);
                if stream.read(&mut input).await.unwrap_or(0) == 0 || ends.get() {
                    return;
                }
                let mut rest = &input[..];
                let command = reader.read(&mut rest).unwrap();
                input.drain(..input.len() - rest.len());
                let Some(command) = command else { continue };
                let batch = numbers(&command);
                let reply: String =
                    batch.iter().map(|(_, asked)| format!(":{asked}\r\n:0\r\n")).collect();
                let reply = format!("*{}\r\n{reply}", 2 * batch.len());
                to.borrow_mut().extend(batch);
                stream.write_all(&mut [IoSlice::new(reply.as_bytes())]).await.unwrap();
            }
        });
        Self { port, heard, is_gone }
    }
}

/// What was taken and what is asked for, of each bucket of a batch.
fn numbers(command: &Value) -> Vec<(u64, u64)> {
    let words = command.as_array().unwrap().iter();
    let words: Vec<_> =
        words.map(|word| String::from_utf8_lossy(word.as_bytes().unwrap())).collect();
    let keys: usize = words[2].parse().unwrap();
    let buckets = words[3 + keys..].chunks(4);
    buckets.map(|words| (words[2].parse().unwrap(), words[3].parse().unwrap())).collect()
}

/// Limits that gateways share, through a server at this port.
fn shared(site: &Site, port: u16, access: &SharedAccess) -> (Rc<RateLimits>, Rc<RateSharing>) {
    let server = format!(
        "{SHARED}[rate_sharing]\nserver = \"redis://127.0.0.1:{port}\"\ntimeout = \"1s\"\n"
    );
    let config = config(&server);
    let generation = site.gateway.generation();
    let (client, log) = (&generation.upstream, &generation.logs.error);
    let sharing = access.rate_sharing(&config, None, client, log).unwrap();
    (RateLimits::open(&config.apps[0], access, Some(&sharing)), sharing)
}

#[test]
fn a_shared_limit_whose_server_is_away_counts_here() {
    in_loop(async {
        let (site, access) = (Site::new(&[], ""), SharedAccess::default());
        let (limits, _sharing) = shared(&site, 1, &access);
        let limit = limits.of_scripts("login").unwrap();
        assert_eq!(admitted(limit, 7), 7);
        // A request that was to ask the server when it went away.
        let id = client().bucket(&limit.shared.as_ref().unwrap().0);
        assert!(limit.ask(id, 1).await.is_admitted);
        assert!(!limit.look(&client(), 1).is_admitted);
        assert!(!limit.ask(id, 1).await.is_admitted);
        assert_eq!(access.sharing.asked.load(Relaxed), 0);
        assert_eq!(access.sharing.local.load(Relaxed), 9);
        // What this gateway has admitted is too much by itself: nobody has to decide that.
        assert_eq!(admitted(limit, 5), 0);
        assert_eq!(access.sharing.local.load(Relaxed), 9);
    });
}

#[test]
fn tokens_of_the_server_are_taken_here_as_well() {
    in_loop(async {
        let (site, access) = (Site::new(&[], ""), SharedAccess::default());
        let server = Server::start();
        let (limits, _sharing) = shared(&site, server.port, &access);
        let limit = limits.of_scripts("login").unwrap();
        // All tokens at once are asked for, as soon as the server is here.
        let mut clients = 0_u32;
        let connected = || {
            clients += 1;
            let (name, hash) = (clients.to_le_bytes(), KeyHash::of(clients));
            let taken = limit.take(&ClientKey::Value(&name), hash, 8);
            matches!(taken, Taken::Ask(_)).then_some(())
        };
        wait_for("the server", connected).await;
        let mut asked = 0;
        for _ in 0..5 {
            match take(limit, 1) {
                Taken::Known(spending) => assert!(spending.is_admitted),
                Taken::Ask(id) => {
                    asked += 1;
                    assert!(limit.ask(id, 1).await.is_admitted);
                }
            }
        }
        assert_eq!(access.sharing.asked.load(Relaxed), asked);
        let all = || {
            let heard = server.heard.borrow();
            (heard.iter().map(|(taken, asked)| taken + asked).sum::<u64>() == 5).then_some(())
        };
        wait_for("the server to hear of all tokens", all).await;
        // It goes away while a request of another client waits for it.
        server.is_gone.set(true);
        assert!(limit.ask([0; 16], 1).await.is_admitted);
        assert_eq!(admitted(limit, 9), 3);
    });
}

#[test]
fn only_limits_that_are_equal_for_every_gateway_are_shared() {
    in_loop(async {
        let site = Site::new(&[], "");
        let access = SharedAccess::default();
        let (_, sharing) = shared(&site, 1, &access);
        let bucket = |keys: &str| {
            let server = "[rate_sharing]\nserver = \"redis://127.0.0.1:1\"\n";
            let keys = format!("[[app.site.access]]\nrate_limit = {{ {keys} }}\n{server}");
            let limits = RateLimits::open(&config(&keys).apps[0], &access, Some(&sharing));
            let limit = limits.of_rule(0).unwrap();
            limit.shared.as_ref().map(|(id, _)| client().bucket(id))
        };
        let rule = |key: &str| bucket(&format!("rate = \"2/h\", shared = true, key = \"{key}\""));
        assert_eq!(bucket("rate = \"2/h\", key = \"cookie:sid\""), None);
        assert_eq!(rule("header:X-Key"), rule("header:x-key"));
        assert_ne!(rule("cookie:sid"), rule("cookie:SID"));
        assert_ne!(rule("cookie:sid"), rule("header:sid"));
        assert_ne!(rule("address"), rule("header:address"));
        let more = bucket("rate = \"2/h\", burst = 3, shared = true, key = \"address\"");
        assert_ne!(more, rule("address"));
    });
}
