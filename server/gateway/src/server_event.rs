//! [`ServerEvent`]: events of a server, for the terminal, the command that waits for it, and the
//! service manager.
//!
//! [`crate::server`] sends them; the command line receives them. Invariant: [`ServerEvent::Ready`]
//! is sent once, when every address is bound and every app's PHP has started, and
//! [`ServerEvent::Alive`] is sent by the event loop itself, so that it stops when the loop is
//! stuck.

use crate::gateway::Gateway;
use outboard_reactor as reactor;
use std::path::PathBuf;
use std::rc::Rc;

/// An event of a server.
#[derive(Debug)]
pub enum ServerEvent {
    /// The server responds to requests from now on.
    Ready(Ready),
    /// A reload has started; requests are served as before.
    Reloading,
    /// The reload has ended, with the active generation, or the error that left everything
    /// unchanged.
    Reloaded(Result<u32, String>),
    /// The event loop runs.
    Alive,
    /// The process with this id has taken over; this one completes running requests.
    HandedOver {
        /// Of the new server.
        pid: u32,
    },
    /// The server accepts no more requests.
    Stopping,
}

/// The state of a server that is ready.
#[derive(Debug)]
pub struct Ready {
    /// Addresses of apps and of the key-value store.
    pub listeners: Vec<String>,
    /// The socket for `outboard status`.
    pub admin_socket: Option<PathBuf>,
    /// App names with the version of their PHP and their root.
    pub apps: Vec<(String, String, PathBuf)>,
}

/// Receives the events, on the server's thread; must not block.
pub type Listener = Rc<dyn Fn(&ServerEvent)>;

/// Sends [`ServerEvent::Alive`] every `period_ms`, if the loops of all threads run; never returns.
pub(crate) async fn notify_alive(gateway: Rc<Gateway>, listener: Listener, period_ms: u64) {
    loop {
        gateway.shards.on_followers(async |_| ()).await;
        listener(&ServerEvent::Alive);
        reactor::sleep(period_ms).await;
    }
}
