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

#[derive(Debug, Default)]
struct State {
    shut: bool,
    /// Connections on which the service has said something that does not go through.
    holding: usize,
    /// Both sides of every connection that was accepted.
    connections: Vec<TcpStream>,
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
        self.state.0.lock().expect("no holder panics").shut = true;
    }

    /// Returns once the service has said something that does not go through.
    #[track_caller]
    pub fn wait_until_holding(&self) {
        let (state, changed) = &*self.state;
        let state = state.lock().expect("no holder panics");
        let waited = changed.wait_timeout_while(state, PATIENCE, |state| state.holding == 0);
        assert!(!waited.expect("no holder panics").1.timed_out(), "nobody asked the service");
    }

    /// Lets everything through, also what was held back.
    pub fn open(&self) {
        self.state.0.lock().expect("no holder panics").shut = false;
        self.state.1.notify_all();
    }

    /// Closes all connections; what was held back is lost. New ones find the gate open.
    pub fn cut(&self) {
        for connection in self.state.0.lock().expect("no holder panics").connections.drain(..) {
            // The client may have closed it already.
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.open();
    }
}

fn connect(client: TcpStream, service: &Path, shared: &Arc<(Mutex<State>, Condvar)>) {
    let Ok(server) = UnixStream::connect(service) else { return };
    client.set_nodelay(true).expect("a TCP socket has the option");
    let kept = client.try_clone().expect("descriptors are left");
    shared.0.lock().expect("no holder panics").connections.push(kept);
    let (mut from_client, mut to_client) = (client.try_clone().expect("as above"), client);
    let (mut from_server, mut to_server) = (server.try_clone().expect("as above"), server);
    let shared = shared.clone();
    thread::spawn(move || {
        copy(&mut from_client, &mut to_server, || ());
        let _ = to_server.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        copy(&mut from_server, &mut to_client, || wait_until_open(&shared));
        let _ = to_client.shutdown(Shutdown::Both);
        let _ = from_server.shutdown(Shutdown::Both);
    });
}

fn wait_until_open(shared: &(Mutex<State>, Condvar)) {
    let (state, changed) = shared;
    let mut state = state.lock().expect("no holder panics");
    state.holding += 1;
    changed.notify_all();
    state = changed.wait_while(state, |state| state.shut).expect("no holder panics");
    state.holding -= 1;
}

/// Ends with either side.
fn copy(source: &mut impl Read, target: &mut impl Write, before_each: impl Fn()) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = source.read(&mut buffer) {
        before_each();
        if target.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}
