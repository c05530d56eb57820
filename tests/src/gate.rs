//! A door between a client and a real service: lets through what the service says, holds it back,
//! or ends the connections. So a test decides when an answer comes, and knows that it is awaited.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How long a client may take to ask before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A TCP listener in front of a service's Unix socket. Its threads end with the process.
#[derive(Debug)]
pub struct Gate {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Passage {
    #[default]
    Open,
    Shut,
    /// What comes ends its connection.
    Cut,
}

#[derive(Debug, Default)]
struct State {
    passage: Passage,
    /// Connections on which the service has said something that does not go through.
    holding: usize,
}

impl Gate {
    /// An open one.
    pub fn before(service: &Path) -> Gate {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::<(Mutex<State>, Condvar)>::default();
        let (service, shared) = (PathBuf::from(service), state.clone());
        thread::spawn(move || {
            for client in listener.incoming() {
                connect(client.expect("accept(2)"), &service, &shared);
            }
        });
        Gate { address, state }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on nothing of what the service says goes through.
    pub fn shut(&self) {
        self.set(Passage::Shut);
    }

    /// Returns once the service has said something that does not go through.
    #[track_caller]
    pub fn wait_until_holding(&self) {
        self.wait_until_holding_on(1);
    }

    /// Returns once that is so on several connections.
    #[track_caller]
    pub fn wait_until_holding_on(&self, connections: usize) {
        let (state, changed) = &*self.state;
        let state = state.lock().expect("no holder panics");
        let is_less = |state: &mut State| state.holding < connections;
        let waited = changed.wait_timeout_while(state, PATIENCE, is_less);
        assert!(!waited.expect("no holder panics").1.timed_out(), "nobody asked the service");
    }

    /// Lets everything through, also what was held back.
    #[track_caller]
    pub fn open(&self) {
        self.set(Passage::Open);
        self.wait_until_empty();
    }

    /// Closes the connections on which something is held back, and from now on each on which the
    /// service says something; that is lost.
    #[track_caller]
    pub fn cut(&self) {
        self.set(Passage::Cut);
        self.wait_until_empty();
    }

    fn set(&self, passage: Passage) {
        self.state.0.lock().expect("no holder panics").passage = passage;
        self.state.1.notify_all();
    }

    /// So that what was held before is not taken for what is held next.
    #[track_caller]
    fn wait_until_empty(&self) {
        let (state, changed) = &*self.state;
        let state = state.lock().expect("no holder panics");
        let waited = changed.wait_timeout_while(state, PATIENCE, |state| state.holding > 0);
        assert!(!waited.expect("no holder panics").1.timed_out(), "something is still held back");
    }
}

fn connect(client: TcpStream, service: &Path, shared: &Arc<(Mutex<State>, Condvar)>) {
    let Ok(server) = UnixStream::connect(service) else { return };
    client.set_nodelay(true).expect("a TCP socket has the option");
    let (mut from_client, mut to_client) = (client.try_clone().expect("dup(2)"), client);
    let (mut from_server, mut to_server) = (server.try_clone().expect("dup(2)"), server);
    let shared = shared.clone();
    thread::spawn(move || {
        copy(&mut from_client, &mut to_server, || true);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        copy(&mut from_server, &mut to_client, || may_pass(&shared));
        let _ = to_client.shutdown(Shutdown::Both);
        let _ = from_server.shutdown(Shutdown::Both);
    });
}

/// Waits until the gate is not shut; false when it is cut.
fn may_pass(shared: &(Mutex<State>, Condvar)) -> bool {
    let (state, changed) = shared;
    let mut state = state.lock().expect("no holder panics");
    if state.passage == Passage::Shut {
        state.holding += 1;
        changed.notify_all();
        let is_shut = |state: &mut State| state.passage == Passage::Shut;
        state = changed.wait_while(state, is_shut).expect("no holder panics");
        state.holding -= 1;
        changed.notify_all();
    }
    state.passage == Passage::Open
}

/// Ends with either side, or when something may not pass.
fn copy(source: &mut impl Read, target: &mut impl Write, may_pass: impl Fn() -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = source.read(&mut buffer) {
        if !may_pass() || target.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}
