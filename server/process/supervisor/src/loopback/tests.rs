use super::*;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

#[test]
fn only_sockets_are_socket_links() {
    assert_eq!(parse_socket_link(b"socket:[4711]"), Some(4711));
    for target in ["pipe:[4711]", "socket:[", "socket:[x]", "/dev/null", "anon_inode:[eventpoll]"] {
        assert_eq!(parse_socket_link(target.as_bytes()), None, "{target}");
    }
}

/// A process that holds nothing but its pipe; ended when dropped.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        let mut command = Command::new("/bin/cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// One that was handed the client's socket as its standard output.
    fn with(client: &TcpStream) -> Self {
        let socket = std::os::fd::OwnedFd::from(client.try_clone().unwrap());
        let mut command = Command::new("/bin/cat");
        command.stdin(Stdio::piped()).stdout(Stdio::from(socket));
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn finds_the_owner_on(listen: &str) {
    let listener = TcpListener::bind(listen).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (_server, peer) = listener.accept().unwrap();
    let (owner, bystander) = (Bystander::with(&client), Bystander::new());
    drop(client);
    assert_eq!(diag::socket(peer).unwrap(), table::socket(peer), "two ways to the same answer");
    assert!(is_owned_by(peer, &[bystander.pid(), owner.pid()]));
    assert!(!is_owned_by(peer, &[bystander.pid()]));
    assert!(!is_owned_by(peer, &[i32::MAX]));
    assert!(!is_owned_by(peer, &[]));
}

#[test]
fn a_process_that_calls_over_ipv4_is_found() {
    finds_the_owner_on("127.0.0.1:0");
}

#[test]
fn a_process_that_calls_over_ipv6_is_found() {
    // Containers without IPv6 have nothing to find here.
    if TcpListener::bind("[::1]:0").is_ok() {
        finds_the_owner_on("[::1]:0");
    }
}
