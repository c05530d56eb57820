//! No process of a host survives a killed gateway. This program starts itself as that gateway
//! (`harness = false`), because the kernel's signal for a parent's death needs a real parent.

mod driver;

use driver::{Host, eventually, is_running, settings_as_nobody};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const ROLE: &str = "OUTBOARD_TEST_GATEWAY";

fn main() {
    match std::env::var(ROLE).as_deref() {
        Ok("same user") => run_gateway(Host::new()),
        Ok(_) => run_gateway(Host::with(settings_as_nobody())),
        Err(_) => ["same user", "other user"].into_iter().for_each(assert_nothing_survives),
    }
}

/// Prints the process ids, and waits to be killed.
fn run_gateway(mut host: Host) {
    let worker = host.fork();
    println!("{} {}", host.pid(), worker.pid);
    let _ = std::io::stdin().read(&mut [0]);
}

fn assert_nothing_survives(user: &str) {
    let mut gateway = Command::new(std::env::current_exe().unwrap())
        .env(ROLE, user)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(gateway.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pids: Vec<i32> = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| is_running(*pid)), "{line}");
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    eventually(|| !pids.iter().any(|pid| is_running(*pid)));
    println!("nothing survives a killed gateway, {user} ... ok");
}
