//! [`work`]: which name is due, and what is under way.
//!
//! Run by the manager on its thread. Invariants: at most [`ATTEMPTS`] names are under way, each once; the
//! thread looks at the clock at least every [`LOOK_S`], because it may jump.

use crate::attempt::attempt;
use crate::commons::Commons;
use crate::message::Message;
use crate::name::Name;
use crate::plan::{Step, Time};
use crate::sharing::follow;
use crate::storage::Storage;
use crate::worker::{Shared, Worker, now_s, status};
use outboard_config::Acme;
use outboard_reactor::{MailboxReceiver, now_ms, spawn, with_deadline};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Names that are under way at a time.
const ATTEMPTS: usize = 8;
/// The longest time between two looks at the clock.
const LOOK_S: u64 = 60;

/// Obtains certificates until the manager is dropped.
pub(crate) async fn work(
    config: Acme,
    storage: Storage,
    shared: Shared,
    receiver: MailboxReceiver<Message>,
) {
    let worker = Worker::new(config, storage, shared);
    worker.load_names();
    share(&worker);
    loop {
        let next_s = start_due(&worker);
        let pause_s = next_s.saturating_sub(now_s()).clamp(1, LOOK_S);
        match with_deadline(now_ms() + pause_s * 1000, receiver.next()).await {
            Ok(Message::Stop) => return,
            Ok(Message::Configure(config)) => {
                worker.configure(*config);
                share(&worker);
            }
            Ok(Message::Missing) => worker.report_missing(),
            // An attempt has ended, or a name may be due.
            Ok(Message::Look) | Err(_) => {}
        }
    }
}

/// Shares certificates with other gateways, if a server for it is configured.
fn share(worker: &Rc<Worker>) {
    let config = worker.config();
    worker.commons.replace(None);
    let Some(server) = config.shared.clone() else { return };
    let node = match worker.storage.node(Commons::new_node) {
        Ok(node) => node,
        Err(why) => return worker.error(&format!("certificates are not shared: {why}")),
    };
    let commons = Rc::new(Commons::new(server, worker.http(), node));
    worker.commons.replace(Some(commons.clone()));
    spawn(follow(worker.clone(), commons));
}

/// Starts attempts for the names that are due; returns when the next one is.
fn start_due(worker: &Rc<Worker>) -> Time {
    let now_s = now_s();
    worker.accounts.borrow().values().for_each(|account| account.correct(now_s));
    let names: Vec<Rc<Name>> = worker.names.borrow().values().cloned().collect();
    let mut next_s = Time::MAX;
    let mut statuses = BTreeMap::new();
    for name in names {
        name.record.borrow_mut().correct(now_s);
        let step = worker.next_step(&name, now_s);
        statuses.insert(name.text.clone(), status(&name, step, now_s));
        if name.is_busy.get() {
            continue;
        }
        match step {
            Step::Obtain if worker.under_way.get() < ATTEMPTS => start(worker, name, Task::Obtain),
            // It is started when another attempt has ended.
            Step::Obtain => {}
            Step::Wait(at_s) => {
                next_s = next_s.min(at_s);
                if worker.wants_window(&name, now_s) && worker.under_way.get() < ATTEMPTS {
                    start(worker, name, Task::Window);
                }
            }
        }
    }
    worker.statuses.set(statuses);
    next_s
}

fn start(worker: &Rc<Worker>, name: Rc<Name>, task: Task) {
    let worker = worker.clone();
    name.is_busy.set(true);
    worker.under_way.set(worker.under_way.get() + 1);
    spawn(async move {
        match task {
            Task::Obtain => attempt(&worker, &name).await,
            Task::Window => worker.request_window(&name).await,
        }
        name.is_busy.set(false);
        worker.issued.settle(&name.text);
        worker.under_way.set(worker.under_way.get() - 1);
        let _ = worker.messages.send(Message::Look);
    });
}

enum Task {
    Obtain,
    Window,
}
