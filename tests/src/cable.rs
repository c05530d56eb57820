//! A way to a server's Unix socket by TCP, which a test can cut and mend.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

/// See the module.
#[derive(Debug)]
pub struct Cable {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    /// What goes over it now.
    under_way: Vec<TcpStream>,
}

impl Cable {
    /// A way to this socket.
    pub fn to(socket: PathBuf) -> Cable {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(Mutex::new(State::default()));
        let theirs = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut state = theirs.lock().expect("no holder panics");
                if !state.is_cut
                    && let Ok(server) = UnixStream::connect(&socket)
                    && relay(&stream, &server).is_ok()
                {
                    state.under_way.push(stream);
                }
            }
        });
        Cable { address, state }
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and lets none come about.
    pub fn cut(&self) {
        let mut state = self.state.lock().expect("no holder panics");
        state.is_cut = true;
        for stream in state.under_way.drain(..) {
            // The other side may have ended it before.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets connections come about again.
    pub fn mend(&self) {
        self.state.lock().expect("no holder panics").is_cut = false;
    }
}

/// Carries bytes both ways until either side ends.
fn relay(client: &TcpStream, server: &UnixStream) -> io::Result<()> {
    let (mut from_client, mut to_client) = (client.try_clone()?, client.try_clone()?);
    let (mut from_server, mut to_server) = (server.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    Ok(())
}
