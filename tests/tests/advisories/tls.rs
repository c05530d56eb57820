//! Clients that have to prove who they are.

use outboard_e2e::{Certificate, Scratch, Server};
use std::process::Command;

/// Caddy CVE-2026-27586: without the authority of its clients a server must not accept any client.
#[test]
fn an_unreadable_client_authority_is_no_start() {
    let folder = Scratch::new("authority");
    folder.folder("www");
    Certificate::make(folder.path(), "one", "DNS:one.test");
    folder.file("empty.pem", "");
    folder.file("garbage.pem", "certainly");
    let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    folder.file("cut.pem", cut);
    let check = |authority: &str| {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nclient_ca = \"{authority}\"\n\
             tls = [{{ certificate = \"one.pem\", key = \"one.key\" }}]\n[app.site]\nroot = \"www\"\n"
        );
        folder.file("outboard.toml", text);
        let mut program = Command::new(Server::binary());
        let output = program.arg("check").current_dir(folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = check("one.pem");
    assert_eq!(code, Some(0), "{said}");
    for authority in ["missing.pem", "empty.pem", "garbage.pem", "cut.pem", "one.key", "www"] {
        let (code, said) = check(authority);
        assert!(code == Some(2) && said.contains(authority), "{authority}: {code:?} {said}");
    }
}
