//! A certificate authority with the ACME protocol: Pebble, with a name server of its own.
//!
//! Each has an address of its own in the loopback network, where every name resolves to, so that the ports
//! of a server that it checks are the same in every test. It rejects nonces and reuses authorizations at
//! random, as its authors intend. `OUTBOARD_PEBBLE` names the directory of another Pebble than Debian's.

use crate::{Certificate, Child, Launch, Scratch};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

/// A running Pebble.
#[derive(Debug)]
pub struct Authority {
    address: Ipv4Addr,
    scratch: Scratch,
    pebble: Option<Child>,
    settings: Vec<(&'static str, String)>,
    _names: Child,
}

impl Authority {
    /// The port where a server is checked over HTTP.
    pub const HTTP_PORT: u16 = 5002;
    /// The port where a server is checked over TLS.
    pub const TLS_PORT: u16 = 5001;
    /// Identifier and key of an account that an authority of [`Authority::with_accounts`] knows.
    pub const ACCOUNT: [&str; 2] =
        ["kid-1", "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"];

    /// Starts one that rejects this share of nonces, in percent.
    pub fn start(rejected_nonces: u8) -> Authority {
        Authority::with(rejected_nonces, false, Authority::unused_address())
    }

    /// One at the address of another, which checks the same server.
    pub fn beside(other: &Authority) -> Authority {
        Authority::with(0, false, other.address)
    }

    /// One that creates accounts only for those that it knows.
    pub fn with_accounts() -> Authority {
        Authority::with(0, true, Authority::unused_address())
    }

    fn unused_address() -> Ipv4Addr {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let [_, _, high, low] = std::process::id().to_be_bytes();
        Ipv4Addr::new(127, 64 + high % 64, low, NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn with(rejected_nonces: u8, needs_account: bool, address: Ipv4Addr) -> Authority {
        let scratch = Scratch::new("authority");
        Certificate::make(scratch.path(), "server", &format!("IP:{address}"));
        let names = Launch::new("/usr/bin/pebble-challtestsrv")
            .args(["-http01", "", "-https01", "", "-tlsalpn01", ""])
            .arg("-defaultIPv4")
            .arg(address.to_string())
            .args(["-defaultIPv6", "", "-dns01"])
            .arg(format!("{address}:8053"))
            .arg("-management")
            .arg(format!("{address}:8055"))
            .start();
        names
            .wait_for(|line| line.contains("Starting management server").then_some(()))
            .unwrap_or_else(|output| panic!("the name server does not start: {output}"));
        let settings = vec![
            ("PEBBLE_VA_NOSLEEP", "1".to_owned()),
            ("PEBBLE_WFE_NONCEREJECT", rejected_nonces.to_string()),
            ("PEBBLE_AUTHZREUSE", "50".to_owned()),
        ];
        let account = format!("{:?}: {:?}", Authority::ACCOUNT[0], Authority::ACCOUNT[1]);
        let folder = scratch.path().display().to_string();
        let text = format!(
            r#"{{"pebble": {{"listenAddress": "{address}:14000", "managementListenAddress": "{address}:15000",
            "certificate": "{folder}/server.pem", "privateKey": "{folder}/server.key",
            "httpPort": {}, "tlsPort": {}, "ocspResponderURL": "",
            "externalAccountBindingRequired": {needs_account}, "externalAccountMACKeys": {{{account}}},
            "profiles": {{"default": {{"description": "", "validityPeriod": 7776000}},
                "short": {{"description": "", "validityPeriod": 518400}}}}}}}}"#,
            Authority::HTTP_PORT,
            Authority::TLS_PORT,
        );
        scratch.file("pebble.json", text);
        let mut authority = Authority { address, scratch, pebble: None, settings, _names: names };
        authority.begin();
        authority
    }

    /// Starts it, with nothing known of an earlier run.
    pub fn begin(&mut self) {
        let folder = std::env::var_os("OUTBOARD_PEBBLE").unwrap_or_else(|| "/usr/bin".into());
        let program = Path::new(&folder).join("pebble");
        let mut launch = Launch::new(&program.to_string_lossy());
        for (name, value) in &self.settings {
            launch = launch.env(name, value);
        }
        let child = launch
            .args(["-strict", "-dnsserver"])
            .arg(format!("{}:8053", self.address))
            .arg("-config")
            .arg(self.scratch.path().join("pebble.json"))
            .start();
        child
            .wait_for(|line| line.contains("ACME directory available").then_some(()))
            .unwrap_or_else(|output| panic!("Pebble does not start: {output}"));
        self.pebble = Some(child);
    }

    /// Ends it.
    pub fn end(&mut self) {
        self.pebble = None;
    }

    /// The address that every name has.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The URL of its directory.
    pub fn directory(&self) -> String {
        format!("https://{}:14000/dir", self.address)
    }

    /// The certificate of the authority's own server.
    pub fn certificate(&self) -> PathBuf {
        self.scratch.path().join("server.pem")
    }

    /// A file with the root of the certificates that it issues.
    #[track_caller]
    pub fn root(&self) -> PathBuf {
        let file = self.scratch.path().join("root.pem");
        let output = Command::new("curl")
            .args(["-sSfk", "-o"])
            .arg(&file)
            .arg(format!("https://{}:15000/roots/0", self.address))
            .output()
            .expect("curl is there");
        assert!(output.status.success(), "{output:?}");
        file
    }

    /// A program that publishes records of the name server, as `dns_hook`.
    pub fn dns_hook(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let script = format!(
            "#!/bin/sh\ncase $1 in present) do=set-txt ;; *) do=clear-txt ;; esac\n\
             exec curl -sSf -d \"{{\\\"host\\\":\\\"$2.\\\",\\\"value\\\":\\\"$3\\\"}}\" \
             http://{}:8055/$do\n",
            self.address
        );
        let file = self.scratch.file("hook", script);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("its file");
        file
    }

    /// Whether it recommends times of renewal (RFC 9773), as Pebble does since 2.7.
    pub fn recommends_renewal(&self) -> bool {
        let output = Command::new("curl").args(["-sSfk", &self.directory()]).output();
        String::from_utf8_lossy(&output.expect("curl is there").stdout).contains("renewalInfo")
    }

    /// Recommends to renew a certificate, in PEM, now.
    #[track_caller]
    pub fn recommend_renewal(&self, certificate: &str) {
        let window =
            r#"{"suggestedWindow":{"start":"2020-01-01T00:00:00Z","end":"2020-01-02T00:00:00Z"}}"#;
        let body = serde_json::json!({ "certificate": certificate, "ariResponse": window });
        let output = Command::new("curl")
            .args(["-sSfk", "-d", &body.to_string()])
            .arg(format!("https://{}:15000/set-renewal-info/", self.address))
            .output()
            .expect("curl is there");
        assert!(output.status.success(), "{output:?}");
    }

    /// What it has written.
    pub fn output(&self) -> String {
        self.pebble.as_ref().map(Child::output).unwrap_or_default()
    }

    /// How many orders it has received.
    pub fn orders(&self) -> usize {
        let output = self.output();
        let counts = output.lines().rev().filter_map(|line| {
            let (_, rest) = line.split_once("There are now ")?;
            rest.strip_suffix(" orders in the db")?.parse().ok()
        });
        { counts }.next().unwrap_or(0)
    }
}
