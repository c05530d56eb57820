//! A name server that knows one name, and answers when the test lets it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long a client may take to ask before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many this process has started: each has an address of its own.
static STARTED: AtomicU8 = AtomicU8::new(0);

/// Every name has the address 127.0.0.1 (RFC 1035). Its threads end with the process.
#[derive(Debug)]
pub struct Names {
    address: IpAddr,
    asked: Receiver<()>,
    gate: Sender<()>,
    is_gone: Arc<AtomicBool>,
}

impl Names {
    /// One at the port of name servers, at a loopback address that is the process's own.
    pub fn start() -> Names {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let which = STARTED.fetch_add(1, Ordering::Relaxed);
        let address = IpAddr::from(Ipv4Addr::new(127, 53 + which, high, low));
        let socket = UdpSocket::bind(SocketAddr::new(address, 53));
        let socket = socket.unwrap_or_else(|error| panic!("{address}:53: {error} (root may)"));
        let (tell, asked) = channel();
        let (gate, allowed) = channel();
        let is_gone = Arc::new(AtomicBool::new(false));
        let theirs = is_gone.clone();
        thread::spawn(move || serve(&socket, &tell, &allowed, &theirs));
        Names { address, asked, gate, is_gone }
    }

    /// Where it listens.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns once a client has asked for a name.
    #[track_caller]
    pub fn wait_until_asked(&self) {
        self.asked.recv_timeout(PATIENCE).expect("a client asks for a name");
    }

    /// No name exists from now on.
    pub fn forget(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
    }

    /// Lets it answer from now on.
    pub fn open(&self) {
        self.gate.send(()).expect("it runs as long as the process");
    }
}

fn serve(socket: &UdpSocket, tell: &Sender<()>, allowed: &Receiver<()>, is_gone: &AtomicBool) {
    let mut is_open = false;
    let mut query = [0; 512];
    while let Ok((len, client)) = socket.recv_from(&mut query) {
        if !is_open {
            // The test may have ended.
            let _ = tell.send(());
            is_open = allowed.recv().is_ok();
        }
        // The client may have given up.
        let is_gone = is_gone.load(Ordering::SeqCst);
        let _ = socket.send_to(&answer(&query[..len], is_gone), client);
    }
}

/// The question again, and for an IPv4 address (type 1) its answer.
fn answer(query: &[u8], is_gone: bool) -> Vec<u8> {
    let mut end = 12;
    while query.get(end).is_some_and(|len| *len > 0) {
        end += usize::from(query[end]) + 1;
    }
    let question = &query[12..(end + 5).min(query.len())];
    let is_ipv4 = question.ends_with(&[0, 1, 0, 1]) && !is_gone;
    let mut answer = query[..2].to_vec();
    // NXDOMAIN is response code 3.
    let code = if is_gone { 0x83 } else { 0x80 };
    answer.extend([0x81, code, 0, 1, 0, u8::from(is_ipv4), 0, 0, 0, 0]);
    answer.extend(question);
    if is_ipv4 {
        // The name by a pointer to the question, type A, class IN, 60 s, 4 bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    answer
}
