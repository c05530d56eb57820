//! The lives of workers: they join, get items, leave, die, and are followed by others.
//!
//! Called by the calls of workers, and by the gateway when a worker has exited or a generation is
//! active. Invariant: an item that was not acknowledged returns to its seat when its process dies.

use super::StreamServer;
use crate::item::Item;
use crate::seats::{Gone, Next, Process, WorkerLink};
use crate::session::Closing;
use crate::settings::{Dispatch, Settings, is_worker_number};
use outboard_log::{ErrorLog, Level};
use outboard_reactor::{Event, now_ms, share_turn, sleep, spawn, wake, with_deadline};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;

/// Workers that may die of an item; its connection is closed then.
const DEATHS_MAX: u8 = 5;
/// How often vacant seats are looked at.
const VACANT_CHECK_MS: u64 = 11_000;

impl StreamServer {
    /// A generation becomes active: its workers take the seats of their predecessors.
    pub fn activate(&self, generation: u32, log: Rc<ErrorLog>) {
        self.log.replace(log);
        self.active_generation.set(generation);
        let mut successors = self.successors.borrow_mut();
        let (now, later) =
            successors.drain(..).partition(|(process, _)| process.link.generation() == generation);
        *successors = later;
        drop(successors);
        for (process, settings) in now {
            self.seat(process, settings);
        }
    }

    /// A worker takes items from now on, or once its generation is active.
    pub(crate) fn join(&self, link: Rc<dyn WorkerLink>, number: u64, settings: Settings) {
        let key = link.key();
        if !is_worker_number(number) || self.processes.borrow().contains_key(&key) {
            return;
        }
        let process = Rc::new(Process {
            seat: u32::try_from(number).expect("it was checked"),
            is_task_worker: settings.is_task_worker,
            concurrency: settings.concurrency,
            in_flight: RefCell::default(),
            suspects: RefCell::default(),
            has_work: Event::default(),
            is_leaving: Cell::new(false),
            is_gone: Cell::new(false),
            link,
        });
        self.processes.borrow_mut().insert(key, process.clone());
        let generation = process.link.generation();
        if self.active_generation.get() == 0 {
            self.active_generation.set(generation);
        }
        match self.active_generation.get() == generation {
            true => self.seat(process, settings),
            false => self.successors.borrow_mut().push((process, settings)),
        }
    }

    fn seat(&self, process: Rc<Process>, settings: Settings) {
        if process.is_gone.get() || process.is_leaving.get() {
            return;
        }
        if !settings.is_task_worker {
            self.settings.replace(Rc::new(settings));
            self.has_settings.set(true);
            self.waiting_for_settings.take().into_iter().for_each(wake);
        }
        if let Some(server) = self.weak_self.upgrade() {
            spawn(deliver(server, process.clone()));
        }
        self.seats.borrow_mut().join(process);
    }

    /// A worker takes no more items.
    pub(crate) fn leave(&self, key: (u64, u64)) {
        if let Some(process) = self.process(key) {
            process.is_leaving.set(true);
            self.seats.borrow_mut().leave(&process, Vec::new());
        }
    }

    /// A worker has exited: its successor gets what it has not acknowledged.
    pub fn forget(&self, key: (u64, u64)) {
        self.partial_calls.borrow_mut().remove(&key);
        self.successors.borrow_mut().retain(|(process, _)| process.link.key() != key);
        let Some(process) = self.processes.borrow_mut().remove(&key) else { return };
        process.is_gone.set(true);
        process.has_work.set();
        let mut left = Vec::new();
        for (_, mut item) in process.in_flight.take() {
            // Nothing is known of the first worker. One that was to leave has not died of it.
            let may_be_why = item.deaths == 0 || std::mem::take(&mut item.is_started);
            item.deaths += u8::from(may_be_why && !process.is_leaving.get());
            if item.is_acknowledged {
                self.settle(&item);
            } else if item.deaths >= DEATHS_MAX {
                self.give_up(&item);
            } else {
                left.push(item);
            }
        }
        self.seats.borrow_mut().leave(&process, left);
        if let Some(server) = self.weak_self.upgrade() {
            spawn(async move {
                sleep(VACANT_CHECK_MS).await;
                server.abandon_vacant();
            });
        }
    }

    fn give_up(&self, item: &Item) {
        let text = format!(
            "{DEATHS_MAX} workers have died while they handled the same message: its connection is \
             closed"
        );
        self.log(Level::Error, &text);
        if let Some(session) = self.session_of(item) {
            session.close(Closing::Reset);
        }
        self.settle(item);
    }

    fn abandon_vacant(&self) {
        let items = self.seats.borrow_mut().abandon_vacant(now_ms());
        for item in items {
            let seat = match self.session_of(&item) {
                Some(session) => self.seat_of(&session),
                None => self.seats.borrow_mut().choose(Dispatch::LeastLoaded),
            };
            self.seats.borrow_mut().push(seat, item);
        }
    }
}

/// Sends items to a process as its ring has room, until it is gone.
async fn deliver(server: Rc<StreamServer>, process: Rc<Process>) {
    let mut event = Vec::new();
    while !process.is_gone.get() {
        let next = server.seats.borrow_mut().next(&process);
        match next {
            Next::Item(item) => {
                if deliver_item(&process, item, &mut event).await.is_err() {
                    return;
                }
            }
            Next::Nothing => process.has_work.wait().await,
            Next::After(ms) => {
                // Either may come first.
                let _ = with_deadline(now_ms() + ms, process.has_work.wait()).await;
            }
        }
    }
}

async fn deliver_item(process: &Process, item: Item, event: &mut Vec<u8>) -> Result<(), Gone> {
    let (id, pieces) = (item.id, item.pieces());
    process.in_flight.borrow_mut().insert(id, item);
    for piece in 0..pieces {
        poll_fn(|_| process.link.poll_room()).await?;
        event.clear();
        match process.in_flight.borrow().get(&id) {
            Some(item) => item.encode_piece(piece, event),
            // The worker has acknowledged what it has not received.
            None => break,
        }
        process.link.send(event)?;
        share_turn(event.len()).await;
    }
    Ok(())
}
