//! Calls of the admin API: their errors, and the servers that they are for.

use super::admin_server::{AdminServer, directory};
use crate::Outboard;
use crate::admin_client::{AdminClient, CallError, call};
use crate::target::Target;
use clap::Parser;
use outboard_admin_api::certificates::Get;
use outboard_admin_api::server::Reload;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;

#[test]
fn a_socket_without_a_server_is_named() {
    let directory = directory("no-server");
    let socket = directory.join("sock");
    let Err(CallError::Unreachable(error)) = call(&socket, &Get {}) else { panic!("no server") };
    let start = format!("no server responds at {}: No such file", socket.display());
    assert!(error.starts_with(&start), "{error}");
    assert!(error.ends_with("check that it is running and that this is its --admin socket"));
    // A server that was killed leaves its socket.
    drop(UnixListener::bind(&socket).unwrap());
    let Err(CallError::Unreachable(error)) = call(&socket, &Get {}) else { panic!("it ended") };
    assert!(error.contains("Connection refused"), "{error}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn another_program_is_not_a_server() {
    let directory = directory("other-program");
    let socket = directory.join("sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for greeting in ["SSH-2.0-OpenSSH\r\n\r\n", ""] {
                // The other end may have read enough already.
                let _ = listener.accept().unwrap().0.write_all(greeting.as_bytes());
            }
        });
        for _ in 0..2 {
            let Err(error) = call(&socket, &Reload {}) else { panic!("it is none") };
            assert!(matches!(error, CallError::Unreachable(_)), "{error}");
        }
    });
    let server = AdminServer::replying("html", 200, "<html>");
    let error = call(&server.socket(), &Get {}).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("the process at {} is not an Outboard server", server.socket().display())
    );
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_refusal_is_the_sentence_of_the_server() {
    let server = AdminServer::replying("sentence", 409, r#"{"error":"the file has errors"}"#);
    let error = call(&server.socket(), &Reload {}).unwrap_err();
    assert!(matches!(&error, CallError::Refused(why) if why == "the file has errors"), "{error:?}");
    let server = AdminServer::replying("no-sentence", 500, "oops");
    let error = call(&server.socket(), &Reload {}).unwrap_err();
    assert!(matches!(error, CallError::Unreachable(_)), "{error:?}");
}

#[test]
fn several_requests_share_a_connection() {
    let server = AdminServer::start("connection", |request| (200, request.as_bytes().to_vec()));
    let mut client = AdminClient::connect(&server.socket()).unwrap();
    for (method, path, body) in [("GET", "/a", ""), ("POST", "/b", "body"), ("GET", "/c", "")] {
        let response = client.request(method, path, body.as_bytes()).unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.body, format!("{method} {path}").as_bytes());
    }
    assert_eq!(server.take()[1].1, b"body");
}

#[test]
fn a_socket_and_names_of_servers_exclude_each_other() {
    let target = |words: &str| {
        let outboard = Outboard::try_parse_from(words.split(' ')).unwrap();
        let crate::Command::Status(arguments) = outboard.command else { panic!("{words}") };
        match Target::of(&arguments) {
            Ok(Target::Named(pick)) => Ok(pick.names.join(" ")),
            Ok(Target::Served(admin)) => Ok(format!("{:?}", admin.admin)),
            Err(message) => Err(message),
        }
    };
    assert_eq!(target("outboard status a b"), Ok("a b".to_owned()));
    assert_eq!(target("outboard status --admin /s"), Ok("Some(\"/s\")".to_owned()));
    assert_eq!(target("outboard status --conf-dir /c"), Ok(String::new()));
    let message = "--admin selects one server and a, b another: remove one of them";
    assert_eq!(target("outboard status a b --admin /s"), Err(message.to_owned()));
    if !Path::new("/etc/outboard").is_dir() {
        assert_eq!(target("outboard status"), Ok("None".to_owned()));
    }
}
