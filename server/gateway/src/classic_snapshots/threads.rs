//! [`SnapshotThreads`]: how the threads of the server have the same snapshots of an app.
//!
//! Made with each configuration. The lead decides what boots; the others send it their wishes, and start their
//! parts of a pool when it says so. Invariant: each thread receives all decisions in order.

use outboard_php_pool::pool::PoolShards;
use outboard_php_pool::renewal::Renewal;
use outboard_reactor::{MailboxReceiver, MailboxSender, mailbox};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// See the module.
#[derive(Debug)]
pub(crate) struct SnapshotThreads {
    places: Box<[Place]>,
}

#[derive(Debug)]
struct Place {
    sender: MailboxSender<Message>,
    receiver: Mutex<Option<MailboxReceiver<Message>>>,
}

/// What threads tell each other.
#[derive(Debug)]
pub(super) enum Message {
    /// To the lead: this is worth a boot.
    Wish(Boot),
    /// From the lead: a snapshot boots.
    Begin(Arc<SharedSnapshot>),
    /// From the lead: it is not needed any more.
    End(Arc<SharedSnapshot>),
    /// To the thread itself: the app is retired.
    Close,
}

/// A script and the request that it boots with.
#[derive(Debug, Clone)]
pub(super) struct Boot {
    /// `SCRIPT_NAME`.
    pub(super) script: Box<[u8]>,
    pub(super) file: PathBuf,
    /// The frame of the request.
    pub(super) request: Vec<u8>,
}

/// A snapshot, of which each thread has some workers.
#[derive(Debug)]
pub(super) struct SharedSnapshot {
    pub(super) boot: Boot,
    /// Its name in logs and in the status.
    pub(super) title: String,
    pub(super) shards: Arc<PoolShards>,
    /// Whether what its boot has read has changed.
    pub(super) renewal: Arc<Renewal>,
    used_ms: AtomicU64,
}

impl SharedSnapshot {
    pub(super) fn new(boot: Boot, title: String, threads: usize, now_ms: u64) -> Arc<Self> {
        let (shards, used_ms) = (PoolShards::new(threads), AtomicU64::new(now_ms));
        let renewal = Renewal::new(threads);
        Arc::new(Self { boot, title, shards, renewal, used_ms })
    }

    /// A request is handled from it.
    pub(super) fn use_at(&self, now_ms: u64) {
        // Written seldom, since all threads read it.
        if self.used_ms() + 1_000 < now_ms {
            self.used_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// When it was last used, to about a second.
    pub(super) fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }
}

impl SnapshotThreads {
    /// For so many threads.
    pub(crate) fn new(count: usize) -> Arc<Self> {
        let place = |_| {
            let (sender, receiver) = mailbox();
            Place { sender, receiver: Mutex::new(Some(receiver)) }
        };
        Arc::new(Self { places: (0..count.max(1)).map(place).collect() })
    }

    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// The messages to a thread; taken once.
    pub(super) fn receiver(&self, index: usize) -> Option<MailboxReceiver<Message>> {
        self.places[index].receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sends a message. A thread whose app is retired needs none.
    pub(super) fn send(&self, to: usize, message: Message) {
        let _ = self.places[to].sender.send(message);
    }

    /// From the lead to all others.
    pub(super) fn send_to_others(&self, message: impl Fn() -> Message) {
        (1..self.count()).for_each(|to| self.send(to, message()));
    }
}
