//! [`StreamServer`]: the raw connections of an app, its workers, and the items between them.
//!
//! One per app; a reload passes it on to the next generation. Connections and datagrams call it with what
//! has arrived, the gateway with the calls and deaths of workers. Invariants: an item that no worker has
//! acknowledged is handed to the next one when its worker dies, and one that was acknowledged never is;
//! a worker reaches only connections of its own app.

mod workers;

use crate::datagram::BoundDatagram;
use crate::item::{ITEM_BYTES, Item};
use crate::measure::Measure;
use crate::output::Output;
use crate::seats::{Process, Seats};
use crate::session::{Closing, Session};
use crate::settings::{Dispatch, PortSettings, Settings};
use outboard_buffer::Account;
use outboard_log::{ErrorLog, Event as LogEvent, Level, Wall};
use outboard_reactor::{Event, TaskId, current_task, now_ms};
use outboard_ring::stream::EventKind;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

/// Items that wait, beyond which datagrams are dropped.
const PENDING_MAX: usize = 10_000;

/// Counts since the start.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) accepted: u64,
    pub(crate) closed: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) items: u64,
}

/// See the module.
#[derive(Debug)]
pub struct StreamServer {
    weak_self: Weak<Self>,
    app: String,
    pub(crate) memory: Rc<Account>,
    log: RefCell<Rc<ErrorLog>>,
    settings: RefCell<Rc<Settings>>,
    pub(crate) sessions: RefCell<BTreeMap<u64, Rc<Session>>>,
    seats: RefCell<Seats>,
    processes: RefCell<HashMap<(u64, u64), Rc<Process>>>,
    /// Workers of a generation that is not active yet.
    successors: RefCell<Vec<(Rc<Process>, Settings)>>,
    active_generation: Cell<u32>,
    has_settings: Cell<bool>,
    waiting_for_settings: RefCell<Vec<TaskId>>,
    /// Calls that have not arrived completely, by process; `None`: one that is too large.
    pub(crate) partial_calls: RefCell<HashMap<(u64, u64), Option<Output>>>,
    pub(crate) datagrams: RefCell<Vec<Rc<BoundDatagram>>>,
    last_session: Cell<u64>,
    last_item: Cell<u64>,
    pub(crate) counts: Cell<Counts>,
    /// Reused for each read.
    pub(crate) read_buffer: RefCell<Vec<u8>>,
    event_buffer: RefCell<Vec<u8>>,
}

impl StreamServer {
    /// A server without workers; what it holds is counted in an account below this one.
    pub fn new(app: &str, operations: &Rc<Account>, log: Rc<ErrorLog>) -> Rc<Self> {
        Rc::new_cyclic(|weak_self| Self {
            weak_self: weak_self.clone(),
            app: app.to_owned(),
            memory: Account::shared_below(operations, "streams", 3),
            log: RefCell::new(log),
            settings: RefCell::default(),
            sessions: RefCell::default(),
            seats: RefCell::default(),
            processes: RefCell::default(),
            successors: RefCell::default(),
            active_generation: Cell::new(0),
            has_settings: Cell::new(false),
            waiting_for_settings: RefCell::default(),
            partial_calls: RefCell::default(),
            datagrams: RefCell::default(),
            last_session: Cell::new(0),
            last_item: Cell::new(0),
            counts: Cell::default(),
            read_buffer: RefCell::default(),
            event_buffer: RefCell::default(),
        })
    }

    /// Sets the sockets of its datagrams.
    pub fn set_datagrams(&self, sockets: Vec<Rc<BoundDatagram>>) {
        self.datagrams.replace(sockets);
    }

    /// Closes all connections: the app is not configured any more.
    pub fn close_all(&self) {
        for session in self.sessions.borrow().values() {
            session.close(Closing::Flush);
        }
    }

    pub(crate) fn process(&self, key: (u64, u64)) -> Option<Rc<Process>> {
        self.processes.borrow().get(&key).cloned()
    }

    /// Items that wait for workers.
    pub(crate) fn pending(&self) -> usize {
        self.seats.borrow().pending()
    }

    /// Whether a worker has joined; the current task is woken when one does.
    pub(crate) fn has_settings(&self) -> bool {
        if !self.has_settings.get() {
            self.waiting_for_settings.borrow_mut().push(current_task());
        }
        self.has_settings.get()
    }

    /// The settings of a port for a new connection.
    pub(crate) fn port_settings(&self, port: u16) -> Rc<PortSettings> {
        Rc::new(self.settings.borrow().port(port))
    }

    /// Registers a connection; `None` if there are too many.
    pub(crate) fn open(
        &self,
        port: u16,
        peer: Option<SocketAddr>,
        local_port: u16,
        is_tls: bool,
    ) -> Option<Rc<Session>> {
        let most = self.settings.borrow().max_connections;
        if most > 0 && self.sessions.borrow().len() as u64 >= most {
            self.log(Level::Info, "a connection is refused: there are max_connection of them");
            return None;
        }
        let id = self.last_session.get() + 1;
        self.last_session.set(id);
        let settings = self.port_settings(port);
        let now_s = Wall::now().unix_s();
        let session = Rc::new(Session {
            id,
            port,
            peer,
            local_port,
            is_paused: Cell::new(settings.waits_for_confirmation),
            settings: RefCell::new(settings),
            connected_s: now_s,
            last_receive_s: Cell::new(now_s),
            last_receive_ms: Cell::new(now_ms()),
            last_send_s: Cell::new(now_s),
            seat: Cell::new(None),
            user: Cell::new(0),
            is_protected: Cell::new(false),
            is_tls,
            output: RefCell::new(Output::new(&self.memory)),
            waiting: RefCell::default(),
            closing: Cell::new(Closing::Open),
            is_connected: Cell::new(true),
            unacknowledged: Cell::new(0),
            unacknowledged_bytes: Cell::new(0),
            measure: Measure::default(),
            is_blocked: Cell::new(false),
            changed: Event::default(),
        });
        self.sessions.borrow_mut().insert(id, session.clone());
        self.count(|counts| counts.accepted += 1);
        Some(session)
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        count(&mut counts);
        self.counts.set(counts);
    }

    /// Whether the program learns of the beginning and the end of connections.
    pub(crate) fn has_events(&self) -> bool {
        let settings = self.settings.borrow();
        settings.dispatch.is_bound() || settings.has_unsafe_events
    }

    /// Queues something of a connection for its worker; returns the number of the item.
    pub(crate) fn enqueue(&self, session: &Rc<Session>, kind: EventKind, bytes: Vec<u8>) -> u64 {
        let seat = self.seat_of(session);
        session.add(bytes.len());
        let item = self.item(kind, session.port, session.id, bytes);
        let id = item.id;
        self.seats.borrow_mut().push(seat, item);
        id
    }

    /// Queues a datagram; false if too many wait.
    pub fn enqueue_packet(&self, port: u16, bytes: Vec<u8>) -> bool {
        if self.pending() >= PENDING_MAX || self.memory.is_full() {
            return false;
        }
        let dispatch = match self.settings.borrow().dispatch {
            Dispatch::RoundRobin => Dispatch::RoundRobin,
            _ => Dispatch::LeastLoaded,
        };
        let seat = self.seats.borrow_mut().choose(dispatch);
        self.count(|counts| counts.received_bytes += bytes.len() as u64);
        let item = self.item(EventKind::Packet, port, 0, bytes);
        self.seats.borrow_mut().push(seat, item);
        true
    }

    /// Queues a message of one worker for another; false if there is no such worker.
    pub(crate) fn enqueue_message(&self, from: u64, to: u64, bytes: Vec<u8>) -> bool {
        let Ok(to) = u32::try_from(to) else { return false };
        if self.seats.borrow().process(to).is_none() || self.pending() >= PENDING_MAX {
            return false;
        }
        let item = self.item(EventKind::Message, 0, from, bytes);
        self.seats.borrow_mut().push(Some(to), item);
        true
    }

    fn item(&self, kind: EventKind, port: u16, session: u64, bytes: Vec<u8>) -> Item {
        let id = self.last_item.get() + 1;
        self.last_item.set(id);
        self.count(|counts| counts.items += 1);
        let held = self.memory.hold(bytes.len() + ITEM_BYTES);
        Item {
            id,
            kind,
            port,
            session,
            bytes,
            deaths: 0,
            is_started: false,
            is_acknowledged: false,
            _held: held,
        }
    }

    fn seat_of(&self, session: &Session) -> Option<u32> {
        let dispatch = self.settings.borrow().dispatch;
        let mut seats = self.seats.borrow_mut();
        if !dispatch.is_bound() {
            return seats.choose(dispatch);
        }
        if let Some(seat) = session.seat.get().filter(|id| seats.has(*id)) {
            return Some(seat);
        }
        let seat = match dispatch {
            Dispatch::Address => seats.by_number(session.peer.map_or(0, |peer| hash(&peer.ip()))),
            Dispatch::User if session.user.get() != 0 => seats.by_number(session.user.get()),
            Dispatch::LeastLoadedAtOpen => seats.choose(dispatch),
            _ => seats.by_number(session.id),
        };
        session.seat.set(seat);
        seat
    }

    /// The connection belongs to another worker if it is dispatched by user.
    pub(crate) fn bind(&self, session: &Session, user: u64) {
        session.user.set(user);
        if self.settings.borrow().dispatch == Dispatch::User {
            session.seat.set(None);
        }
    }

    /// A process has begun to respond to this item, so that no other one will handle it.
    pub(crate) fn acknowledge(&self, process: &Process, item: u64) {
        if let Some(item) = process.in_flight.borrow_mut().get_mut(&item) {
            item.is_acknowledged = true;
        }
        if process.suspects.borrow_mut().remove(item) {
            process.has_work.set();
        }
    }

    /// A process has handled this item.
    pub(crate) fn finish(&self, process: &Process, item: u64) {
        let mut in_flight = process.in_flight.borrow_mut();
        let was_full = in_flight.len() >= process.concurrency;
        let Some(item) = in_flight.remove(&item) else { return };
        drop(in_flight);
        let was_full = process.suspects.borrow_mut().remove(item.id) || was_full;
        self.settle(&item);
        if was_full {
            process.has_work.set();
        }
    }

    fn session_of(&self, item: &Item) -> Option<Rc<Session>> {
        let has_session = !matches!(item.kind, EventKind::Packet | EventKind::Message);
        has_session.then(|| self.sessions.borrow().get(&item.session).cloned()).flatten()
    }

    fn settle(&self, item: &Item) {
        if let Some(session) = self.session_of(item) {
            if item.kind == EventKind::Measure {
                session.measure.finished(item.id);
                session.changed.set();
            }
            session.acknowledge(item.bytes.len());
            self.remove_if_over(&session);
        }
    }

    pub(crate) fn remove_if_over(&self, session: &Session) {
        if session.is_over() && self.sessions.borrow_mut().remove(&session.id).is_some() {
            self.count(|counts| counts.closed += 1);
        }
    }

    /// Sends an event that nobody acknowledges to a process.
    pub(crate) fn notify(&self, key: (u64, u64), kind: EventKind, session: &Session) {
        let Some(process) = self.process(key) else { return };
        let mut event = self.event_buffer.borrow_mut();
        event.clear();
        let (port, id) = (session.port, session.id);
        outboard_ring::stream::StreamEvent {
            kind,
            is_last: true,
            is_suspect: false,
            port,
            item: 0,
            session: id,
            bytes: b"",
        }
        .encode(&mut event);
        // A process that has gone waits for nothing.
        let _ = process.link.send(&event);
    }

    pub(crate) fn log(&self, level: Level, text: &str) {
        let event = LogEvent { app: Some(&self.app), text, ..LogEvent::default() };
        self.log.borrow().write(level, event);
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
