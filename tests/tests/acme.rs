//! Certificates that the server obtains itself, from Pebble.

#![forbid(unsafe_code)]

use outboard_e2e::{Authority, Configured, Docroot, Server, eventually};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

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
    let (address, tls, plain) = (authority.address(), Authority::TLS_PORT, Authority::HTTP_PORT);
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
