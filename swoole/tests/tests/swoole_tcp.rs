//! Programs with a `Swoole\Server` of their own protocol, run by `outboard run`: the gateway holds the
//! connections.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Certificate, Configured, Docroot, Program, connect, connect_from, read_to_any_end,
};
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The ports of `server.php`.
const LINES: usize = 0;
const LENGTHS: usize = 1;
const RAW: usize = 2;
const MEASURED: usize = 3;
const DATAGRAMS: usize = 4;

/// How long a test that asks again and again does so.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(settings: &Value) -> Program {
    Program::start(Docroot::of("swoole_tcp"), "server.php", &[&settings.to_string()])
}

/// A server that the tests share whose workers they leave alone.
fn shared() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| start(&json!({"task_worker_num": 1})))
}

#[track_caller]
fn address(program: &Program, port: usize) -> SocketAddr {
    let url = &program.listeners()[port];
    let (_, rest) = url.split_once("://").unwrap_or_else(|| panic!("{url} is a URL"));
    rest.trim_end_matches('/').parse().unwrap_or_else(|_| panic!("{url} has an address"))
}

/// A client that sends lines and receives lines.
struct Lines {
    stream: BufReader<TcpStream>,
}

impl Lines {
    #[track_caller]
    fn to(program: &Program) -> Lines {
        Lines { stream: BufReader::new(connect(address(program, LINES))) }
    }

    #[track_caller]
    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).expect("the server reads");
    }

    #[track_caller]
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the server sends");
        assert!(line.ends_with('\n'), "the connection has ended after {line:?}");
        line.trim_end().to_owned()
    }

    #[track_caller]
    fn ask(&mut self, command: &str) -> String {
        self.send(&format!("{command}\n"));
        self.line()
    }

    #[track_caller]
    fn json(&mut self, command: &str) -> Value {
        let text = self.ask(command);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{command}: {text}"))
    }

    #[track_caller]
    fn ends(mut self) -> Vec<u8> {
        let mut rest = self.stream.buffer().to_vec();
        rest.extend(read_to_any_end(self.stream.get_mut()));
        rest
    }
}

/// Asks until the response is as wanted.
#[track_caller]
fn await_line(client: &mut Lines, command: &str, wanted: &str) {
    let begun = Instant::now();
    loop {
        let line = client.ask(command);
        if line == wanted {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{command}: {line}");
    }
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("it is a process");
    // It may be gone already.
    let _ = kill_process(pid, Signal::KILL);
}

#[test]
fn each_line_is_a_message_however_it_arrives() {
    let mut client = Lines::to(shared());
    assert_eq!(client.ask("echo hello"), "hello");
    client.send("echo o");
    client.send("ne\necho two\necho thr");
    client.send("ee\n");
    assert_eq!([client.line(), client.line(), client.line()], ["one", "two", "three"]);
}

#[test]
fn a_length_field_ends_each_message() {
    let mut stream = connect(address(shared(), LENGTHS));
    let long = vec![b'x'; 300_000];
    for message in [&b"one"[..], b"", &long] {
        let mut bytes = (message.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(message);
        for piece in bytes.chunks(100_001) {
            stream.write_all(piece).expect("the server reads");
        }
        let mut received = vec![0; bytes.len()];
        stream.read_exact(&mut received).expect("it comes back");
        assert!(received == bytes, "a message of {} bytes", message.len());
    }
    // Longer than package_max_length.
    stream.write_all(&u32::MAX.to_be_bytes()).expect("the server reads");
    assert_eq!(read_to_any_end(&mut stream), b"");
}

#[track_caller]
fn assert_received(stream: &mut TcpStream, wanted: &[u8]) {
    let mut received = vec![0; wanted.len()];
    stream.read_exact(&mut received).expect("it comes");
    assert!(received == wanted, "{}", String::from_utf8_lossy(&received));
}

#[test]
fn a_function_of_the_program_finds_the_end_of_each_message() {
    let mut stream = connect(address(shared(), MEASURED));
    stream.write_all(b"5 hello3 one0 1").expect("the server reads");
    assert_received(&mut stream, b"[5 hello][3 one][0 ]");
    stream.write_all(b"0 ten").expect("the server reads");
    stream.write_all(b" letter").expect("the server reads");
    assert_received(&mut stream, b"[10 ten letter]");
    let long = format!("200000 {}", "x".repeat(200_000));
    stream.write_all(long.as_bytes()).expect("the server reads");
    assert_received(&mut stream, format!("[{long}]").as_bytes());
    // No length, one that is too large, and an exception.
    for invalid in [&b"123456789"[..], b"99999999 ", b"text"] {
        let mut stream = connect(address(shared(), MEASURED));
        stream.write_all(invalid).expect("the server reads");
        assert_eq!(read_to_any_end(&mut stream), b"");
    }
    // The end of the stream does not overtake what was sent before.
    let mut stream = connect(address(shared(), MEASURED));
    stream.write_all(b"4 last3 not").expect("the server reads");
    stream.shutdown(std::net::Shutdown::Write).expect("it is connected");
    assert_eq!(read_to_any_end(&mut stream), b"[4 last][3 not]");
}

#[test]
fn half_of_a_measured_message_survives_its_worker() {
    let program = start(&json!({"worker_num": 1}));
    let mut lines = Lines::to(&program);
    let mut stream = connect(address(&program, MEASURED));
    for round in 0..5 {
        stream.write_all(b"3 one5 ha").expect("the server reads");
        assert_received(&mut stream, b"[3 one]");
        kill(lines.ask("pid").parse().expect("a number"));
        stream.write_all(b"lf").expect("the server reads");
        stream.write_all(b"2").expect("the server reads");
        assert_received(&mut stream, b"[5 half2]");
        assert_eq!(lines.ask(&format!("echo {round}")), round.to_string());
    }
}

#[test]
fn a_port_without_framing_passes_on_what_arrives() {
    let mut stream = connect(address(shared(), RAW));
    let bytes: Vec<u8> = (0..500_000_u32).map(|number| number as u8).collect();
    let mut writer = stream.try_clone().expect("a socket has duplicates");
    let sent = bytes.clone();
    let writing = std::thread::spawn(move || writer.write_all(&sent).expect("the server reads"));
    let mut received = vec![0; bytes.len()];
    stream.read_exact(&mut received).expect("it comes back");
    writing.join().expect("it has written");
    assert!(received == bytes);
}

#[test]
fn datagrams_have_responses() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there are ports");
    socket.set_read_timeout(Some(Duration::from_secs(1))).expect("it is not zero");
    let server = address(shared(), DATAGRAMS);
    for message in ["one".to_owned(), "x".repeat(30_000)] {
        let begun = Instant::now();
        // Any datagram may be lost.
        let received = loop {
            socket.send_to(message.as_bytes(), server).expect("it can be sent");
            let mut buffer = vec![0; 65_536];
            if let Ok(count) = socket.recv(&mut buffer) {
                break String::from_utf8_lossy(&buffer[..count]).into_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "no response comes");
        };
        assert_eq!(received, format!("got {message} from 127.0.0.1"));
    }
}

#[test]
fn a_program_knows_its_connections() {
    let (mut one, mut other) = (Lines::to(shared()), Lines::to(shared()));
    let (first, second) = (one.json("fd"), other.json("fd"));
    assert_ne!(first, second);
    let info = one.json("info");
    let local = one.stream.get_ref().local_addr().expect("it is connected");
    assert_eq!(info["remote_port"], local.port());
    assert_eq!(info["remote_ip"], "127.0.0.1");
    assert_eq!(info["server_port"], address(shared(), LINES).port());
    assert_eq!(info["socket_type"], 1);
    assert!(info["connect_time"].as_u64() > Some(1_600_000_000));
    assert_eq!(one.json(&format!("info {second}"))["socket_fd"], second);
    assert_eq!(one.ask("info 99999"), "false");
    assert_eq!(one.ask(&format!("exist {second}")), "true");
    assert_eq!(one.ask("exist 99999"), "false");
    for list in [one.json("connections"), one.json("list 0")] {
        let list = list.as_array().expect("it is a list").clone();
        assert!(list.contains(&first) && list.contains(&second), "{list:?}");
    }
    assert!(one.json("count").as_u64() >= Some(2));
    assert_eq!(one.ask("list 99999"), "[]");
    assert_eq!(one.json("error"), json!([false, 1005]));
    let stats = one.json("stats");
    assert!(stats["connection_num"].as_u64() >= Some(2), "{stats}");
    assert!(stats["total_recv_bytes"].as_u64() > Some(10), "{stats}");
}

#[test]
fn any_worker_sends_to_any_connection() {
    let (mut one, mut other) = (Lines::to(shared()), Lines::to(shared()));
    let (first, second) = (one.json("fd"), other.json("fd"));
    assert_eq!(one.ask(&format!("to {second} from one")), "true");
    assert_eq!(other.line(), "from one");
    assert_eq!(other.ask(&format!("to {first} from the other")), "true");
    assert_eq!(one.line(), "from the other");
    assert_eq!(one.ask("to 99999 nothing"), "false");
}

#[test]
fn connections_are_closed_by_either_side() {
    let program = start(&json!({"worker_num": 1}));
    let mut watching = Lines::to(&program);
    let mut closed = Lines::to(&program);
    closed.send("echo last\nclose\n");
    assert_eq!(closed.ends(), b"last\n");
    let mut reset = Lines::to(&program);
    assert_eq!(reset.ask("echo there"), "there");
    reset.send("reset\n");
    let error = reset.stream.read_line(&mut String::new()).expect_err("it is reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let mut kicked = Lines::to(&program);
    let fd = kicked.ask("fd");
    assert_eq!(watching.ask(&format!("kick {fd}")), "true");
    assert_eq!(kicked.ends(), b"");
    await_line(&mut watching, &format!("exist {fd}"), "false");
    assert_eq!(watching.ask(&format!("kick {fd}")), "false");
    drop(Lines::to(&program));
    await_line(&mut watching, "calls closed by the client", "1");
    // The reset one is of the server as well.
    await_line(&mut watching, "calls connect", "5");
    await_line(&mut watching, "count", "1");
}

#[test]
fn all_messages_before_the_end_of_the_stream_are_handled() {
    // More of them than a connection may have under way.
    let mut client = Lines::to(shared());
    let commands: String = (0..1000).map(|number| format!("echo {number}\n")).collect();
    client.send(&commands);
    client.stream.get_ref().shutdown(std::net::Shutdown::Write).expect("it is connected");
    let text = String::from_utf8(client.ends()).expect("it is text");
    let mut received: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    received.sort_unstable();
    assert_eq!(received, (0..1000).collect::<Vec<u32>>());
}

#[test]
fn a_client_that_has_sent_its_last_message_gets_its_response() {
    let mut client = Lines::to(shared());
    client.send("sleep 300\necho sent before\n");
    client.stream.get_ref().shutdown(std::net::Shutdown::Write).expect("it is connected");
    assert_eq!(client.ends(), b"sent before\nslept\n");
}

#[test]
fn a_slow_reader_gets_all_and_others_are_served_meanwhile() {
    let program = start(&json!({"worker_num": 1, "buffer_output_size": 1 << 20}));
    let (mut slow, mut other) = (Lines::to(&program), Lines::to(&program));
    slow.send("flood 400\n");
    await_line(&mut other, "calls full", "1");
    assert_eq!(other.ask("echo served"), "served");
    let mut received = vec![0; 400 * 65_536];
    slow.stream.read_exact(&mut received).expect("all of it comes");
    for (piece, number) in received.chunks(65_536).zip(1_u32..) {
        let letter = b'a' + (number % 26) as u8;
        assert!(piece.iter().all(|&byte| byte == letter), "piece {number}");
    }
    assert_eq!(slow.ask("echo end"), "end");
    assert_ne!(other.ask("calls empty"), "0");
    other.send("file\n");
    let mut start = [0; 5];
    other.stream.read_exact(&mut start).expect("the file is sent");
    assert_eq!(&start, b"<?php");
}

#[test]
fn tasks_and_messages_reach_connections_of_other_processes() {
    let mut client = Lines::to(shared());
    client.send("task x\n");
    assert_eq!(client.line(), "from the task worker 2");
    assert_eq!(client.ask("taskwait data"), "DATA");
    assert_eq!(client.json("taskco"), json!(["A", "B"]));
    let own: u64 = client.ask("worker").parse().expect("a number");
    let others = [1 - own, 2];
    for other in others {
        client.send(&format!("message {other}\n"));
        let mut lines = [client.line(), client.line()];
        lines.sort();
        assert_eq!(lines, ["true".to_owned(), format!("worker {other} got it from {own}")]);
    }
    assert_eq!(client.ask("message 7"), "false");
    client.send("after\n");
    assert_eq!(client.line(), "later");
}

#[test]
fn errors_and_exits_end_only_their_message() {
    let mut client = Lines::to(shared());
    client.send("throw\nexit\necho still there\n");
    assert_eq!(client.line(), "still there");
    shared().logs(&["on purpose"]);
}

#[test]
fn silent_connections_are_closed_unless_they_are_protected() {
    let settings =
        json!({"worker_num": 1, "heartbeat_check_interval": 1, "heartbeat_idle_time": 2});
    let program = start(&settings);
    let (mut protected, silent) = (Lines::to(&program), Lines::to(&program));
    assert_eq!(protected.ask("protect"), "true");
    assert_eq!(silent.ends(), b"");
    assert_eq!(protected.ask("heartbeat"), "[]");
    assert_eq!(protected.ask("count"), "1");
}

#[test]
fn a_paused_connection_is_read_later() {
    let mut client = Lines::to(shared());
    assert_eq!(client.ask("pause 100"), "true");
    let begun = Instant::now();
    assert_eq!(client.ask("echo read"), "read");
    assert!(begun.elapsed() >= Duration::from_millis(50), "it is read when it is resumed");
}

#[test]
fn the_dispatch_mode_decides_about_the_worker() {
    let workers =
        |client: &mut Lines| -> Vec<String> { (0..8).map(|_| client.ask("worker")).collect() };
    let round_robin = start(&json!({"dispatch_mode": 1}));
    let mut client = Lines::to(&round_robin);
    let seen = workers(&mut client);
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
    assert_eq!(client.ask("calls connect"), "0");
    for mode in [2, 4, 5, 7] {
        let program = start(&json!({"dispatch_mode": mode}));
        let mut client = Lines::to(&program);
        let seen = workers(&mut client);
        assert!(seen.iter().all(|one| one == &seen[0]), "mode {mode}: {seen:?}");
        if mode == 5 {
            for user in [7, 8] {
                let mut client = Lines::to(&program);
                assert_eq!(client.json(&format!("bind {user}")), json!([true, false]));
                assert_eq!(client.ask("worker"), (user % 2).to_string());
            }
        }
    }
}

#[test]
fn there_are_no_more_connections_than_max_connection() {
    let program = start(&json!({"worker_num": 1, "max_connection": 2}));
    let (mut one, mut two) = (Lines::to(&program), Lines::to(&program));
    assert_eq!([one.ask("echo 1"), two.ask("echo 2")], ["1", "2"]);
    assert_eq!(Lines::to(&program).ends(), b"");
    drop(two);
    await_line(&mut one, "count", "1");
    assert_eq!(Lines::to(&program).ask("echo 3"), "3");
}

#[test]
fn a_message_that_killed_its_worker_is_handled_by_the_successor() {
    let program = start(&json!({"worker_num": 1}));
    let (mut client, mut other) = (Lines::to(&program), Lines::to(&program));
    let pid = other.ask("pid");
    assert_eq!(client.ask("once first"), "handled again");
    assert_ne!(other.ask("pid"), pid);
    assert_eq!(client.ask("calls first"), "2");
    // Half of a response does not leave a worker that dies before the other half.
    assert_eq!(client.ask("halves"), "both halves");
    assert_eq!(client.ask("calls connect"), "2");
}

#[test]
fn a_worker_is_replaced_after_max_request_messages() {
    let program = start(&json!({"worker_num": 1, "max_request": 20}));
    let mut client = Lines::to(&program);
    let mut pids = BTreeSet::new();
    for _ in 0..100 {
        pids.insert(client.ask("pid"));
    }
    assert!((4..=7).contains(&pids.len()), "{pids:?}");
    assert_eq!(client.ask("calls connect"), "1");
}

#[test]
fn a_message_with_a_response_is_never_handled_again() {
    let program = start(&json!({"worker_num": 1}));
    let mut client = Lines::to(&program);
    let pid = client.ask("pid");
    assert_eq!(client.ask("reply_and_die"), "replied");
    let begun = Instant::now();
    while client.ask("pid") == pid {
        assert!(begun.elapsed() < PATIENCE, "the worker does not die");
    }
    assert_eq!(client.ask("calls replied"), "1");
}

#[test]
fn a_message_that_kills_each_worker_ends_its_connection() {
    let program = start(&json!({"worker_num": 1}));
    let mut other = Lines::to(&program);
    assert_eq!(other.ask("echo before"), "before");
    let mut deadly = Lines::to(&program);
    deadly.send("die\n");
    assert_eq!(deadly.ends(), b"");
    assert_eq!(other.ask("echo after"), "after");
    program.logs(&["5 workers have died"]);
}

#[test]
fn a_reload_keeps_connections_and_their_numbers() {
    let program = start(&json!({"worker_num": 2}));
    let mut client = Lines::to(&program);
    let (pid, fd) = (client.ask("pid"), client.ask("fd"));
    assert_eq!(client.ask("reload"), "true");
    let begun = Instant::now();
    while client.ask("pid") == pid {
        assert!(begun.elapsed() < PATIENCE, "the worker is not replaced");
    }
    assert_eq!(client.ask("fd"), fd);
    assert_eq!(client.ask("calls connect"), "1");
    assert_eq!(Lines::to(&program).ask("calls connect"), "2");
}

#[test]
fn http_raw_and_unix_ports_share_a_server() {
    let docroot = Docroot::of("swoole_tcp");
    let folder = docroot.writable("sockets");
    let program = Program::start(docroot, "mixed.php", &[folder.to_str().expect("it is text")]);
    let mut raw = connect(address(&program, 1));
    let mut buffer = [0; 100];
    raw.write_all(b"tcp").expect("the server reads");
    let count = raw.read(&mut buffer).expect("it sends");
    assert_eq!(&buffer[..count], b"raw tcp");
    assert_eq!(program.client().get("/").expect(200).text(), "http 1");
    let path = folder.join("stream.sock");
    let mut unix = std::os::unix::net::UnixStream::connect(path).expect("it listens");
    unix.write_all(b"unix").expect("the server reads");
    let count = unix.read(&mut buffer).expect("it sends");
    assert_eq!(&buffer[..count], b"raw unix");
    let own = folder.join("client.sock");
    let client = std::os::unix::net::UnixDatagram::bind(&own).expect("the folder is ours");
    std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .expect("it is ours");
    client.set_read_timeout(Some(PATIENCE)).expect("it is not zero");
    client.send_to(b"unix", folder.join("datagram.sock")).expect("it listens");
    let count = client.recv(&mut buffer).expect("it sends");
    assert_eq!(&buffer[..count], b"datagram unix");
}

#[test]
fn tls_is_ended_by_the_gateway() {
    let docroot = Docroot::of("swoole_tcp");
    let certificate = Certificate::make(docroot.path(), "one", "DNS:one.test");
    let settings = json!({"ssl_cert_file": certificate.chain, "ssl_key_file": certificate.key,
        "worker_num": 1, "class": "swoole_server"});
    let program = Program::start(docroot, "server.php", &[&settings.to_string()]);
    assert!(program.listeners()[0].starts_with("tls://"), "{:?}", program.listeners());
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &address(&program, LINES).to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is there");
    let (mut input, output) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
    input.write_all(b"echo secret\nbytes 100000\nclose\n").expect("it takes input");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("secret"));
    assert_eq!(lines.next().map(|line| line.len()), Some(100_000));
    assert_eq!(lines.next(), None);
    client.wait().expect("it has ended");
}

#[test]
fn a_configuration_file_names_the_addresses() {
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
        [[listen]]\naddress = \"127.0.0.1:0\"\nprotocol = \"stream\"\n\
        [[listen]]\naddress = \"127.0.0.1:0\"\nprotocol = \"stream\"\nprogram_port = 2\n\
        [[listen]]\naddress = \"127.0.0.1:0\"\nprotocol = \"datagram\"\napp = \"lines\"\n\
        program_port = 4\n\
        [app.lines]\nroot = \"www/nothing\"\nmode = \"worker\"\n\
        [app.lines.worker]\nscript = \"www/server.php\"\nstarts_server = true\n\
        [app.lines.pool]\nmin = 2\nmax = 2\n";
    let docroot = Docroot::of("swoole_tcp");
    docroot.writable("nothing");
    let server = Configured::start(docroot, text);
    let at = |number: usize| -> SocketAddr {
        let (_, rest) = server.listeners()[number].split_once("://").expect("a URL");
        rest.trim_end_matches('/').parse().expect("an address")
    };
    let mut client = Lines { stream: BufReader::new(connect(at(1))) };
    assert_eq!(client.ask("echo configured"), "configured");
    let mut raw = connect(at(2));
    raw.write_all(b"as it is").expect("the server reads");
    let mut buffer = [0; 8];
    raw.read_exact(&mut buffer).expect("it sends");
    assert_eq!(&buffer, b"as it is");
    assert!(server.listeners()[3].starts_with("udp://"));
}

/// Clients with one message under way each, while a worker is killed every 100 ms: each gets each
/// response once, and none its end. There are as many rounds as it takes to kill five.
fn messages_survive_killed_workers(connections: usize, rounds: usize) {
    const THREADS: usize = 4;
    const KILLED: usize = 5;
    let program = start(&json!({"worker_num": 2, "protects": true, "max_connection": 20_000}));
    let address = address(&program, LINES);
    // As many of one address as the server allows.
    let sources = connections.div_ceil(4000).max(1);
    let client = |number: usize| -> Lines {
        let source = [127, 0, 0, 2 + (number % sources) as u8];
        Lines { stream: BufReader::new(connect_from(source.into(), address)) }
    };
    let mut clients: Vec<Lines> = (0..connections).map(client).collect();
    let is_over = AtomicBool::new(false);
    let killed = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if let Some(pid) = program.workers().get(killed.load(Ordering::Relaxed) % 2) {
                    kill(*pid);
                    killed.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let mut threads = Vec::new();
        for (number, share) in clients.chunks_mut(connections.div_ceil(THREADS)).enumerate() {
            threads.push(scope.spawn(move || {
                for round in 0..100 * rounds {
                    if round >= rounds && killed.load(Ordering::Relaxed) >= KILLED {
                        break;
                    }
                    for (index, client) in share.iter_mut().enumerate() {
                        client.send(&format!("echo {number}.{index}.{round}\n"));
                    }
                    for (index, client) in share.iter_mut().enumerate() {
                        assert_eq!(client.line(), format!("{number}.{index}.{round}"));
                    }
                }
            }));
        }
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(|end| end.expect("each message has its response"));
    });
    let killed = killed.load(Ordering::Relaxed);
    println!("{connections} connections, {rounds} messages each, {killed} workers killed");
    assert!(killed >= KILLED, "{killed} workers were killed");
    // Whatever comes besides is one response too many.
    for client in &mut clients {
        assert_eq!(client.ask("echo last"), "last");
        assert_eq!(client.stream.buffer(), b"");
    }
}

#[test]
fn killed_workers_lose_no_connection_and_no_message() {
    messages_survive_killed_workers(400, 40);
}

/// `make swoole-tcp`
#[test]
#[ignore = "it takes some minutes"]
fn killed_workers_lose_none_of_10000_connections() {
    // Half of the gateway's descriptors are for connections.
    let descriptors = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let connections = usize::try_from(descriptors / 2).unwrap_or(usize::MAX).saturating_sub(16);
    messages_survive_killed_workers(connections.min(10_000), 60);
}

#[test]
fn the_example_serves_its_client() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/tcp");
    let program = Program::start_in(Docroot::copy(&folder), "server.php", &[]);
    let output = Command::new("php")
        .arg(folder.join("client.php"))
        .args([r#"{"operation": "deposit", "account": "ada", "amount": 5}"#])
        .args([r#"{"operation": "balance", "account": "ada"}"#, r#"{"operation": "none"}"#])
        .env("ADDRESS", address(&program, 0).to_string())
        .output()
        .expect("PHP is there");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], [r#"{"balance":5}"#, r#"{"balance":5}"#], "{output:?}");
    assert!(lines[2].contains("error"), "{text}");
}
