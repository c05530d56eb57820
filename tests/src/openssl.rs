//! `openssl s_client`: a client of TLS whose sessions, certificates and versions a test chooses.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Seconds until a connection that does not end is given up.
const PATIENCE_S: &str = "60";

/// Runs `openssl` in a folder, which must succeed; returns what it prints.
#[track_caller]
pub fn openssl(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("openssl comes with the TLS library that PHP needs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Requests a path over a new connection with these further options, whose files are in `folder`; returns
/// what openssl prints, with the response, also if there is no connection.
pub fn s_client(folder: &Path, address: SocketAddr, path: &str, options: &[&str]) -> String {
    let mut child = Command::new("timeout")
        .args([PATIENCE_S, "openssl", "s_client", "-ign_eof", "-connect", &address.to_string()])
        .args(options)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl comes with the TLS library that PHP needs");
    let request = format!("GET {path} HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n");
    // It has ended if the handshake has failed.
    let _ = child.stdin.take().expect("it is a pipe").write_all(request.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let printed = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&printed).into_owned()
}
