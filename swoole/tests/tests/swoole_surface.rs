//! The methods of Swoole's classes, one by one: the checks of `fixtures/swoole_surface`.

#![forbid(unsafe_code)]

use outboard_e2e::{Certificate, Docroot, Program};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn docroot() -> Docroot {
    Docroot::of("swoole_surface")
}

/// A certificate of this machine in the folder of the scripts.
fn certificate(docroot: &Docroot) -> Certificate {
    let folder = docroot.writable("certificates");
    let certificate = Certificate::make(&folder, "server", "IP:127.0.0.1,DNS:localhost");
    // As root, the program is another user.
    open(&certificate.key, 0o644);
    certificate
}

fn open(path: &Path, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).expect("it is ours");
}

/// Runs a script of checks: none fails, and each that the script names has been made.
#[track_caller]
fn assert_checks(script: &str) {
    let docroot = docroot();
    let certificate = certificate(&docroot);
    let variables = [
        ("CERTIFICATE", certificate.chain.to_string_lossy().into_owned()),
        ("KEY", certificate.key.to_string_lossy().into_owned()),
    ];
    assert_checks_with(&docroot, script, &variables);
}

#[track_caller]
fn assert_checks_with(docroot: &Docroot, script: &str, variables: &[(&str, String)]) {
    let output = Program::run_with(docroot, script, variables);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script} ends with {}: {errors}", output.status);
    assert_made(docroot, script, &String::from_utf8_lossy(&output.stdout));
}

/// The report has a success for each check in the script, and nothing else.
#[track_caller]
fn assert_made(docroot: &Docroot, script: &str, report: &str) {
    let mut made: BTreeSet<&str> = BTreeSet::new();
    for line in report.lines() {
        made.extend(line.strip_prefix("ok ").unwrap_or_else(|| panic!("{line}")).split(", "));
    }
    let source = std::fs::read_to_string(docroot.path().join(script)).expect("it is there");
    let named = source.split("check('").skip(1).filter_map(|rest| rest.split('\'').next());
    let missing: Vec<&str> =
        named.flat_map(|names| names.split(", ")).filter(|name| !made.contains(name)).collect();
    assert!(missing.is_empty(), "not made: {missing:?}\n{report}");
}

#[test]
fn sockets_and_tcp_clients_have_their_results() {
    assert_checks("socket.php");
}

#[test]
fn http_clients_and_servers_of_coroutines_understand_each_other() {
    assert_checks("http.php");
}

#[test]
fn processes_and_pools_run_talk_and_end() {
    assert_checks("process.php");
}

#[test]
fn events_and_functions_have_their_results() {
    assert_checks("event.php");
}

#[test]
fn helper_classes_have_their_results() {
    assert_checks("library.php");
}

#[test]
fn coroutines_tables_and_timers_have_their_results() {
    assert_checks("core.php");
}

#[test]
fn the_http2_client_talks_to_a_server() {
    let own = docroot();
    let certificate = certificate(&own);
    let path = |path: &Path| path.to_str().expect("the tests name it").to_owned();
    let (chain, key) = (path(&certificate.chain), path(&certificate.key));
    let server = Program::start(docroot(), "http2_server.php", &[&chain, &key]);
    let address = server.listeners()[0].trim_end_matches('/');
    let port = address.rsplit(':').next().expect("it ends with the port").to_owned();
    assert_checks_with(&own, "http2.php", &[("CERTIFICATE", chain), ("PORT", port)]);
}

#[test]
fn requests_and_responses_of_the_server_have_their_results() {
    let server = Program::start(docroot(), "server.php", &[]);
    let report = server.client().get("/checks").expect(200).text();
    assert_made(server.docroot(), "server.php", &report);
}
