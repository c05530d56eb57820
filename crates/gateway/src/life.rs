//! What a server tells of its life to whoever started it: the terminal, the command that waits for
//! it, the system's service manager.
//!
//! [`crate::server`] tells; the command line listens. Invariant: [`Life::Ready`] is told once, when
//! every address is listened on and every app's PHP has started, and [`Life::Alive`] comes from the
//! loop that serves, so that it stays away when the loop is stuck.

use outboard_reactor as reactor;
use std::path::PathBuf;
use std::rc::Rc;

/// A moment in a server's life.
#[derive(Debug)]
pub enum Life {
    /// Requests are answered from now on.
    Ready(Ready),
    /// A reload has begun; requests are answered as before.
    Reloading,
    /// The reload is over; it says which generation serves, or why all stays as it was.
    Reloaded(Result<u32, String>),
    /// The loop turns.
    Alive,
    /// No more requests are begun.
    Stopping,
}

/// What is told once the server serves.
#[derive(Debug)]
pub struct Ready {
    /// Where apps are served.
    pub listeners: Vec<String>,
    /// Where `outboard status` asks.
    pub admin_socket: Option<PathBuf>,
    /// App names with the version of their PHP and their root.
    pub apps: Vec<(String, String, PathBuf)>,
}

/// Hears what happens to a server, on the server's thread; must not wait.
pub type Listener = Rc<dyn Fn(&Life)>;

/// Tells every `period_ms` that the loop turns; never returns.
pub(crate) async fn tell_alive(listener: Listener, period_ms: u64) {
    loop {
        listener(&Life::Alive);
        reactor::sleep(period_ms).await;
    }
}
