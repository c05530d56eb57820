//! Clients that stop in the middle of something short.

use outboard_e2e::{Configured, Protocol, connect};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// Processor time of a process so far, in hundredths of a second (proc_pid_stat(5)).
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name in parentheses may contain spaces; `utime` is the 12th word behind it.
    let words: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    words[11].parse::<u64>().unwrap() + words[12].parse::<u64>().unwrap()
}

fn sent(site: &Configured, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(site.served_at());
    stream.write_all(bytes).unwrap();
    stream
}

/// HAProxy CVE-2026-110353 and CVE-2026-110354: input that is not complete is waited for, and what is
/// refused is not read again and again.
#[test]
fn incomplete_input_takes_no_processor_time() {
    if Protocol::of_run() != Protocol::Http1 {
        return;
    }
    let site = Configured::serving("advisories", "");
    let chunked =
        "POST /variables.php HTTP/1.1\r\nHost: site\r\nTransfer-Encoding: chunked\r\n\r\n";
    // RFC 9113: a preface and SETTINGS, before a frame that ends early.
    let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let pieces: [Vec<u8>; 7] = [
        [&http2[..], b"\0\0\x08\x06\0\0\0\0\0abc"].concat(),
        [&http2[..], b"\0\0\x04\x08\0\0\0\0\0\0"].concat(),
        [&http2[..], b"\0\0"].concat(),
        [chunked.as_bytes(), b"5"].concat(),
        [chunked.as_bytes(), b"5;a="].concat(),
        [chunked.as_bytes(), b"5;", &[b'a'; 100_000]].concat(),
        [chunked.as_bytes(), &[b'0'; 100_000]].concat(),
    ];
    let gateway = site.child().pid();
    let streams: Vec<TcpStream> = pieces.iter().map(|piece| sent(&site, piece)).collect();
    // Behind them in the sockets' queues.
    site.client().get("/variables.php").expect(200);
    let before = ticks(gateway);
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks(gateway) - before;
    // A loop would use a hundred.
    assert!(used < 20, "{used} hundredths of a second");
    drop(streams);
}
