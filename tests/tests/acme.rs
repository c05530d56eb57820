//! Certificates that the server obtains itself, from Pebble.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Authority, Backend, Cable, Configured, Docroot, Launch, Redis, Server, eventually,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server whose certificates an authority issues.
struct Site {
    site: Configured,
    address: Ipv4Addr,
}

impl Site {
    fn start(authority: &Authority, acme: &str, hosts: &[&str]) -> Site {
        let docroot = Docroot::of("tls");
        docroot.put("static.txt", "static\n");
        let site = Configured::start(docroot, &text(authority, acme, hosts));
        Site { site, address: authority.address() }
    }

    /// The same server again, after `kill -9`.
    fn killed_and_started(self, authority: &Authority, acme: &str, hosts: &[&str]) -> Site {
        let docroot = self.site.into_killed();
        let site = Configured::start(docroot, &text(authority, acme, hosts));
        Site { site, address: authority.address() }
    }

    /// A request over TLS; `Err` with what curl prints.
    fn get(&self, root: &Path, host: &str, more: &[&str]) -> Result<String, String> {
        let tls = SocketAddr::from((self.address, Authority::TLS_PORT));
        let output = Command::new("curl")
            .args(["-sS", "-m", "30", "--connect-to", &format!("{host}:443:{tls}"), "--cacert"])
            .arg(root)
            .args(more)
            .arg(format!("https://{host}/static.txt"))
            .output()
            .expect("curl is there");
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// The state of the certificates, by name.
    fn status(&self) -> Vec<Value> {
        let output = self.site.command("certificates", &["--json"]);
        assert!(output.status.success(), "{output:?}");
        let status: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        status["certificates"].as_array().expect("a list").clone()
    }

    /// How many orders the server has recorded for a name.
    fn recorded_orders(&self, name: &str) -> usize {
        let folder = self.site.docroot().beside().path().join("certificates/names");
        let text = std::fs::read(folder.join(format!("{name}.json"))).unwrap_or_default();
        let record: Value = serde_json::from_slice(&text).unwrap_or_default();
        record["orders"].as_array().map_or(0, Vec::len)
    }

    /// The names with a valid certificate.
    fn valid(&self) -> Vec<String> {
        let status = self.status();
        let valid = status.iter().filter(|one| one["state"] == "valid");
        valid.map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Whether a handshake for a name presents a certificate for it. Its signatures are checked elsewhere.
    fn shakes_hands(&self, name: &str) -> bool {
        let settings =
            outboard_tls::client_settings(outboard_tls::Trust::DangerousNoVerification, &[]);
        let server_name = name.to_owned().try_into().expect("a host name");
        let session =
            rustls::ClientConnection::new(Arc::new(settings.expect("no files")), server_name);
        let mut session = session.expect("the settings are valid");
        let address = SocketAddr::from((self.address, Authority::TLS_PORT));
        let Ok(mut stream) = TcpStream::connect(address) else { return false };
        let is_done = session.complete_io(&mut stream).is_ok();
        let chain = session.peer_certificates().unwrap_or_default();
        is_done
            && chain.first().is_some_and(|first| {
                first.windows(name.len()).any(|bytes| bytes == name.as_bytes())
            })
    }

    #[track_caller]
    fn wait_until_valid(&self, count: usize) {
        eventually("all names have certificates", || {
            let status = self.status();
            let valid = status.iter().filter(|one| one["state"] == "valid").count();
            if valid == count { Ok(()) } else { Err(status) }
        });
    }
}

fn text(authority: &Authority, acme: &str, hosts: &[&str]) -> String {
    text_at(authority.address(), authority, acme, hosts)
}

fn text_at(address: Ipv4Addr, authority: &Authority, acme: &str, hosts: &[&str]) -> String {
    let (tls, plain) = (Authority::TLS_PORT, Authority::HTTP_PORT);
    let directory = match acme.contains("directory =") {
        true => String::new(),
        false => format!("directory = {:?}\n", authority.directory()),
    };
    format!(
        "threads = 2\n\
         [[listen]]\naddress = \"{address}:{tls}\"\ntls = \"auto\"\nhttp3 = true\n\
         [[listen]]\naddress = \"{address}:{plain}\"\nredirect_to_https = true\n\
         [log.access]\npath = \"off\"\n[log.error]\nlevel = \"info\"\n\
         [acme]\nterms_agreed = true\nstorage = \"certificates\"\nca = {:?}\n{directory}{acme}\n\
         [app.site]\nroot = \"www\"\nhosts = {hosts:?}\n",
        authority.certificate(),
    )
}

#[test]
fn a_name_gets_a_certificate_for_all_versions_of_http() {
    let authority = Authority::start(50);
    let site = Site::start(&authority, "", &["one.test"]);
    site.wait_until_valid(1);
    let root = authority.root();
    for version in ["--http1.1", "--http2"] {
        assert_eq!(site.get(&root, "one.test", &[version]), Ok("static\n".into()), "{version}");
    }
    let output = Command::new(Server::binary())
        .args(["bench", "--http3", "--insecure", "--quiet", "--requests", "5"])
        .args(["--header", "Host: one.test"])
        .arg(format!("https://{}:{}/static.txt", authority.address(), Authority::TLS_PORT))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let refused = site.get(&root, "other.test", &[]).unwrap_err();
    assert!(refused.contains("alert") || refused.contains("SSL"), "{refused}");
    site.site.logs(&["no TLS for other.test", "not a name of this server"]);
    assert_eq!(authority.orders(), 1);
}

#[test]
fn certificates_survive_a_kill_and_a_lost_authority() {
    let mut authority = Authority::start(0);
    let site = Site::start(&authority, "", &["one.test", "two.test"]);
    site.wait_until_valid(2);
    let root = authority.root();
    assert_eq!(authority.orders(), 2);
    authority.end();
    let site = site.killed_and_started(&authority, "", &["one.test", "two.test", "three.test"]);
    assert_eq!(site.get(&root, "one.test", &[]), Ok("static\n".into()));
    assert_eq!(site.get(&root, "two.test", &[]), Ok("static\n".into()));
    // The authority knows neither accounts nor orders any more.
    site.site.logs(&["certificate for three.test", "does not respond"]);
    authority.begin();
    let site = site.killed_and_started(&authority, "", &["one.test", "two.test", "four.test"]);
    site.wait_until_valid(3);
    assert_eq!(authority.orders(), 1);
    let folder = site.site.docroot().beside().path().join("certificates");
    assert!(!folder.join("names/one.test.pem.new").exists());
}

#[test]
fn an_authority_checks_names_by_tls() {
    let authority = Authority::start(0);
    let site = Site::start(&authority, "challenges = [\"tls-alpn-01\"]", &["one.test"]);
    site.wait_until_valid(1);
    assert_eq!(site.get(&authority.root(), "one.test", &[]), Ok("static\n".into()));
    assert!(!authority.output().contains("validate w/ HTTP"), "{}", authority.output());
    // Only an authority gets the certificate of a challenge.
    let tls = SocketAddr::from((site.address, Authority::TLS_PORT));
    let folder = site.site.docroot().beside().path().to_owned();
    let options = ["-servername", "one.test", "-alpn", "acme-tls/1"];
    let printed = outboard_e2e::s_client(&folder, tls, "/", &options);
    assert!(printed.contains("no peer certificate available"), "{printed}");
}

/// Debian's Pebble has no recommendations yet; with `OUTBOARD_PEBBLE` another one is used.
#[test]
fn a_certificate_is_renewed_when_its_authority_recommends_it() {
    let authority = Authority::start(0);
    if !authority.recommends_renewal() {
        return eprintln!("skipped: this Pebble recommends no times of renewal");
    }
    let site = Site::start(&authority, "", &["one.test"]);
    site.wait_until_valid(1);
    let names = site.site.docroot().beside().path().join("certificates/names");
    let record = || -> Value {
        let text = std::fs::read(names.join("one.test.json")).expect("it is stored");
        serde_json::from_slice(&text).expect("it is JSON")
    };
    eventually("the recommendation is known", || !record()["window"].is_null());
    let stored = std::fs::read_to_string(names.join("one.test.pem")).unwrap();
    let end = "-----END CERTIFICATE-----\n";
    let (_, chain) = stored.split_once("-----BEGIN CERTIFICATE-----").unwrap();
    let first = chain.split_once(end).unwrap().0;
    authority.recommend_renewal(&format!("-----BEGIN CERTIFICATE-----{first}{end}"));
    // As if it had been requested hours ago.
    let docroot = site.site.into_killed();
    let mut before = record();
    before["window"] = Value::Null;
    std::fs::write(names.join("one.test.json"), before.to_string()).unwrap();
    let site = Configured::start(docroot, &text(&authority, "", &["one.test"]));
    eventually("the certificate is renewed", || {
        std::fs::read_to_string(names.join("one.test.pem")).unwrap() != stored
    });
    site.logs(&["certificate for one.test: issued by"]);
    assert_eq!(authority.orders(), 2);
}

#[test]
fn a_further_authority_is_used_when_the_first_does_not_respond() {
    let authority = Authority::start(0);
    let dead = format!("https://{}:1/dir", authority.address());
    let directory = format!("directory = [{dead:?}, {:?}]", authority.directory());
    let site = Site::start(&authority, &directory, &["one.test"]);
    site.wait_until_valid(1);
    site.site.logs(&["one.test", &dead, "does not respond"]);
}

#[test]
fn an_account_is_bound_to_one_that_exists() {
    let authority = Authority::with_accounts();
    let [id, key] = Authority::ACCOUNT;
    let account = format!("external_account = {{ id = {id:?}, key = {key:?} }}");
    let site = Site::start(&authority, &account, &["one.test"]);
    site.wait_until_valid(1);
}

#[test]
fn a_wildcard_is_checked_by_dns() {
    let authority = Authority::start(0);
    let hook = format!("dns_hook = {:?}", authority.dns_hook());
    let site = Site::start(&authority, &hook, &["*.wild.test"]);
    site.wait_until_valid(1);
    let root = authority.root();
    assert_eq!(site.get(&root, "a.wild.test", &[]), Ok("static\n".into()));
    assert_eq!(site.get(&root, "b.wild.test", &[]), Ok("static\n".into()));
    assert!(site.get(&root, "a.b.wild.test", &[]).is_err());
}

#[test]
fn an_approved_name_has_its_certificate_with_the_first_connection() {
    let authority = Authority::start(0);
    let backend = Backend::start();
    let ask = format!("ask = \"{}/text/ok\"", backend.url().trim_end_matches('/'));
    let site = Site::start(&authority, &ask, &["*.shops.test"]);
    let root = authority.root();
    assert_eq!(site.get(&root, "first.shops.test", &["--http2"]), Ok("static\n".into()));
    assert!(backend.heard().iter().any(|line| line.contains("domain=first.shops.test")));
    let site = site.killed_and_started(&authority, &ask, &["*.shops.test"]);
    assert_eq!(site.get(&root, "first.shops.test", &[]), Ok("static\n".into()));
    assert_eq!(authority.orders(), 1);
    let refusing = ask.replace("/text/ok", "/status/403");
    let site = site.killed_and_started(&authority, &refusing, &["*.shops.test"]);
    let asked = || backend.heard().iter().filter(|line| line.contains("domain=")).count();
    let before = asked();
    for name in ["second.shops.test", "second.shops.test", "ok_x.shops.test", "ok_x.shops.test"] {
        let error = site.get(&root, name, &[]).unwrap_err();
        assert!(error.contains("unrecognized name"), "{error}");
    }
    site.site.logs(&["no TLS for second.shops.test", "`ask`"]);
    site.site.logs(&["no TLS for ok_x.shops.test"]);
    let log = site.site.child().output();
    assert_eq!((log.matches("no TLS for ").count(), asked() - before), (2, 1), "{log}");
    assert_eq!(authority.orders(), 1);
}

/// The authority connects to one gateway while the other one orders, as behind a load balancer.
#[test]
fn gateways_share_what_one_of_them_obtains() {
    let authority = Authority::start(0);
    let redis = Redis::start();
    let cable = Cable::to(redis.socket());
    let server = format!("redis://:{}@{}", Redis::PASSWORD, cable.address());
    let shared = format!("shared = {{ server = {server:?} }}");
    let cannot_order = format!("directory = \"https://{}:1/dir\"\n{shared}", authority.address());
    let checked = Site::start(&authority, &cannot_order, &["one.test"]);
    checked.site.logs(&["one.test", "does not respond"]);
    let [a, b, c, d] = authority.address().octets();
    let elsewhere = Ipv4Addr::new(a, b, c, d + 128);
    let docroot = Docroot::of("tls");
    docroot.put("static.txt", "static\n");
    let text = text_at(elsewhere, &authority, &shared, &["one.test"]);
    let ordering = Site { site: Configured::start(docroot, &text), address: elsewhere };
    ordering.wait_until_valid(1);
    checked.wait_until_valid(1);
    checked.site.logs(&["one.test", "another gateway has obtained it"]);
    let root = authority.root();
    for site in [&ordering, &checked] {
        assert_eq!(site.get(&root, "one.test", &[]), Ok("static\n".into()));
    }
    assert_eq!(authority.orders(), 1);
    // Without Redis, each serves what it has stored.
    drop(redis);
    let checked = checked.killed_and_started(&authority, &cannot_order, &["one.test"]);
    assert_eq!(checked.get(&root, "one.test", &[]), Ok("static\n".into()));
}

#[test]
fn the_local_authority_is_trusted_by_the_machine() {
    let authority = Authority::start(0);
    let site = Site::start(&authority, "directory = \"local\"", &["one.test", "site.localhost"]);
    site.wait_until_valid(2);
    let folder = site.site.docroot().beside().path().to_owned();
    let root = folder.join("certificates/local/authority.pem");
    assert_eq!(site.get(&root, "site.localhost", &[]), Ok("static\n".into()));
    let tls = SocketAddr::from((site.address, Authority::TLS_PORT));
    let script = format!(
        "set -e; mount -t tmpfs none /usr/local/share/ca-certificates\n\
         mount -t tmpfs none /etc/ssl/certs; mkdir -p {home}/.pki/nssdb\n\
         certutil -N -d sql:{home}/.pki/nssdb --empty-password\n\
         trusts() {{ curl -sS --connect-to one.test:443:{tls} https://one.test/static.txt; }}\n\
         ! trusts 2>/dev/null\n\
         $0 trust --storage {storage}\n\
         trusts; certutil -L -d sql:{home}/.pki/nssdb\n\
         $0 trust --storage {storage} --remove; ! trusts 2>/dev/null\n\
         ! certutil -L -d sql:{home}/.pki/nssdb | grep Outboard\n",
        home = folder.join("home").display(),
        storage = folder.join("certificates").display(),
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(Server::binary())
        .env("HOME", folder.join("home"))
        .output()
        .expect("unshare is there");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(printed.contains("static\n") && printed.contains("C,,"), "{printed}");
}

#[test]
fn a_domain_is_served_without_a_configuration() {
    let authority = Authority::start(50);
    let docroot = Docroot::of("tls");
    docroot.put("index.php", "<?php echo 'index';");
    let folder = docroot.beside().path().to_owned();
    let address = authority.address();
    let mut launch = Launch::new(&Server::binary().to_string_lossy())
        .args(["serve", "--domain", "one.test", "--domain", "www.one.test", "--listen"])
        .arg(format!("{address}:{}", Authority::TLS_PORT))
        .arg("--listen-http")
        .arg(format!("{address}:{}", Authority::HTTP_PORT))
        .args(["--acme-directory", &authority.directory(), "--acme-ca"])
        .arg(authority.certificate())
        .arg("--acme-storage")
        .arg(folder.join("certificates"))
        .arg("--admin")
        .arg(folder.join("admin.sock"));
    if rustix::process::geteuid().is_root() {
        launch = launch.args(["--user", "www-data"]);
    }
    let child = launch.arg(docroot.path()).start();
    for name in ["one.test", "www.one.test"] {
        let line = format!("certificate for {name}: issued by");
        child.wait_for(|found| found.contains(&line).then_some(())).unwrap();
    }
    let (root, plain) = (authority.root(), Authority::HTTP_PORT);
    let output = Command::new("curl")
        .args(["-sSL", "--connect-to", &format!("one.test:80:{address}:{plain}"), "--connect-to"])
        .arg(format!("one.test:{0}:{address}:{0}", Authority::TLS_PORT))
        .arg("--cacert")
        .arg(root)
        .arg("http://one.test/")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "index", "{output:?}");
}

/// Names that were valid once are served at each moment that the server runs, however often it is killed
/// and whatever it was doing.
#[test]
fn no_kill_costs_a_name_its_certificate_or_too_many_orders() {
    let (names, kills) = (12, 6);
    Endurance::run(names, kills, Duration::from_millis(700));
}

/// `make certificates`: see CONTRIBUTING.md.
#[test]
#[ignore = "it takes minutes: make certificates"]
fn a_thousand_names_survive_kills_for_five_minutes() {
    Endurance::run(1000, 30, Duration::from_secs(10));
}

/// A server that is killed again and again while it obtains certificates.
struct Endurance;

impl Endurance {
    fn run(names: usize, kills: usize, pause: Duration) {
        const LIMIT: usize = 5;
        let authority = Authority::start(50);
        let names: Vec<String> = (0..names).map(|at| format!("name{at}.test")).collect();
        let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
        let acme = format!("max_orders = 100000\nmax_orders_per_name = {LIMIT}");
        let mut site = Site::start(&authority, &acme, &hosts);
        let (mut served, mut handshakes, mut failed) = (BTreeSet::new(), 0, 0);
        for _ in 0..kills {
            let end = Instant::now() + pause;
            let mut round = 0;
            while Instant::now() < end {
                for name in site.valid() {
                    served.insert(name);
                }
                // All names in turn: those that had a certificate before have one now.
                for name in served.iter().skip(round * 40 % served.len().max(1)).take(40) {
                    handshakes += 1;
                    failed += usize::from(!site.shakes_hands(name));
                }
                round += 1;
            }
            site = site.killed_and_started(&authority, &acme, &hosts);
        }
        for name in &served {
            handshakes += 1;
            failed += usize::from(!site.shakes_hands(name));
        }
        println!(
            "{} of {} names valid, {handshakes} handshakes, {failed} failed, {} orders, {kills} kills",
            served.len(),
            names.len(),
            authority.orders()
        );
        assert_eq!(failed, 0);
        assert!(!served.is_empty());
        // What the authority has received was recorded before.
        let recorded: Vec<usize> = names.iter().map(|name| site.recorded_orders(name)).collect();
        assert!(recorded.iter().all(|orders| *orders <= LIMIT), "{recorded:?}");
        assert!(authority.orders() <= recorded.iter().sum());
    }
}
