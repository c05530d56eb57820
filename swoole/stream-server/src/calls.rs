//! The calls of workers: what they send, and what they ask about connections.
//!
//! Called by the gateway for each call. Invariant: a call may name any connection, item or worker;
//! those that this app does not have are ignored.

use crate::output::Output;
use crate::seats::WorkerLink;
use crate::server::StreamServer;
use crate::session::{Closing, Session};
use crate::settings::Settings;
use outboard_log::Level;
use outboard_reactor::now_ms;
use outboard_ring::stream::{EventKind, Peer, StreamCall, Verb};
use serde_json::json;
use std::ops::Bound;
use std::rc::Rc;

/// The longest settings of a worker.
const SETTINGS_BYTES: usize = 64 << 10;
/// The most connections in one list.
const LIST_MAX: u64 = 1000;

/// What is there of a call that came in pieces.
enum Assembled {
    Incomplete,
    Whole(Vec<u8>),
    /// There was no memory for all of it.
    TooLarge,
}

impl StreamServer {
    /// Carries out a call; returns the result of a query.
    pub fn call(&self, link: &Rc<dyn WorkerLink>, call: &StreamCall<'_>) -> Option<Vec<u8>> {
        let key = link.key();
        match call.verb {
            Verb::Join => {
                if call.is_last && call.bytes.len() <= SETTINGS_BYTES {
                    self.join(link.clone(), call.value, Settings::read(call.bytes));
                }
            }
            Verb::Leave => self.leave(key),
            Verb::Acknowledge => {
                if let Some(process) = self.process(key) {
                    self.finish(&process, call.item);
                }
            }
            Verb::Start => {
                if let Some(process) = self.process(key)
                    && let Some(item) = process.in_flight.borrow_mut().get_mut(&call.item)
                {
                    item.is_started = true;
                }
            }
            Verb::Send => self.send(key, call),
            Verb::Close => self.close(key, call),
            Verb::SendTo => {
                if let Some(bytes) = self.whole_call(key, call) {
                    self.responds(key, call);
                    self.send_datagram(call, &bytes);
                }
            }
            Verb::Message => {
                if let Some(bytes) = self.whole_call(key, call) {
                    self.enqueue_message(call.session, call.value, bytes);
                }
            }
            Verb::Bind => self.with_session(call, |session| self.bind(session, call.value)),
            Verb::Protect => {
                self.with_session(call, |session| session.is_protected.set(call.value != 0));
            }
            Verb::Pause => {
                self.with_session(call, |session| session.is_paused.set(call.value != 0))
            }
            Verb::Length => {
                self.with_session(call, |session| session.measure.reported(call.item, call.value));
            }
            Verb::Confirm => self.with_session(call, |session| session.is_paused.set(false)),
            Verb::Info => return Some(self.info(call.session)),
            Verb::List => return Some(self.list(call)),
            Verb::Stats => return Some(self.stats()),
            Verb::Heartbeat => return Some(self.heartbeat(call.value != 0)),
            Verb::Room => return Some(self.room(key, call.session)),
        }
        None
    }

    fn with_session(&self, call: &StreamCall<'_>, act: impl FnOnce(&Session)) {
        if let Some(session) = self.session(call.session) {
            act(&session);
            session.changed.set();
        }
    }

    fn session(&self, id: u64) -> Option<Rc<Session>> {
        self.sessions.borrow().get(&id).cloned()
    }

    /// The item that the caller handles is acknowledged.
    fn responds(&self, key: (u64, u64), call: &StreamCall<'_>) {
        if let Some(process) = self.process(key) {
            self.acknowledge(&process, call.item);
        }
    }

    /// All bytes of a call that came in pieces, with its last one. A worker sends the pieces of a call
    /// one after the other.
    fn whole_call(&self, key: (u64, u64), call: &StreamCall<'_>) -> Option<Vec<u8>> {
        match self.assemble(key, call) {
            Assembled::Whole(bytes) => Some(bytes),
            Assembled::Incomplete | Assembled::TooLarge => None,
        }
    }

    fn assemble(&self, key: (u64, u64), call: &StreamCall<'_>) -> Assembled {
        let mut partial_calls = self.partial_calls.borrow_mut();
        if call.is_last && !partial_calls.contains_key(&key) {
            return Assembled::Whole(call.bytes.to_vec());
        }
        let partial = partial_calls.entry(key).or_insert_with(|| Some(Output::new(&self.memory)));
        if partial.as_mut().is_some_and(|output| !output.push(call.bytes)) {
            *partial = None;
        }
        if !call.is_last {
            return Assembled::Incomplete;
        }
        match partial_calls.remove(&key).flatten() {
            Some(output) => Assembled::Whole(output.pending().to_vec()),
            None => Assembled::TooLarge,
        }
    }

    fn send(&self, key: (u64, u64), call: &StreamCall<'_>) {
        let is_whole = call.is_last && !self.partial_calls.borrow().contains_key(&key);
        let assembled = match is_whole {
            true => None,
            false => match self.assemble(key, call) {
                Assembled::Incomplete => return,
                Assembled::Whole(bytes) => Some(bytes),
                Assembled::TooLarge => {
                    if let Some(session) = self.session(call.session) {
                        self.close_slow(&session);
                    }
                    return;
                }
            },
        };
        let bytes = assembled.as_deref().unwrap_or(call.bytes);
        self.responds(key, call);
        let Some(session) = self.session(call.session).filter(|session| session.is_open()) else {
            return;
        };
        let mut output = session.output.borrow_mut();
        let most = session.settings.borrow().output_bytes.saturating_mul(2);
        let fits = output.pending().len().saturating_add(bytes.len()) <= most && output.push(bytes);
        drop(output);
        if !fits {
            return self.close_slow(&session);
        }
        session.changed.set();
        if session.is_full() {
            self.announce_full(key, &session);
        }
    }

    fn close_slow(&self, session: &Session) {
        let text = format!(
            "connection {} is closed: its client reads too slowly for what the program sends",
            session.id
        );
        self.log(Level::Info, &text);
        session.close(Closing::Reset);
    }

    fn announce_full(&self, key: (u64, u64), session: &Session) {
        let mut waiting = session.waiting.borrow_mut();
        if !waiting.contains(&key) {
            waiting.push(key);
            self.notify(key, EventKind::Full, session);
        }
    }

    fn close(&self, key: (u64, u64), call: &StreamCall<'_>) {
        self.responds(key, call);
        if let Some(session) = self.session(call.session) {
            session.close(if call.value == 0 { Closing::Flush } else { Closing::Reset });
        }
    }

    fn send_datagram(&self, call: &StreamCall<'_>, bytes: &[u8]) {
        let Ok((peer, datagram)) = Peer::decode(bytes) else { return };
        let sockets = self.datagrams.borrow();
        let of_port = |wanted: u64| sockets.iter().find(move |one| u64::from(one.port()) == wanted);
        let suitable = || sockets.iter().find(|one| one.reaches(&peer));
        if let Some(socket) = of_port(call.value).filter(|one| one.reaches(&peer)).or_else(suitable)
        {
            self.count(|counts| counts.sent_bytes += datagram.len() as u64);
            socket.send(&peer, datagram);
        }
    }

    fn info(&self, id: u64) -> Vec<u8> {
        let Some(session) = self.session(id) else { return b"false".to_vec() };
        let (address, port) = match session.peer {
            Some(peer) => (peer.ip().to_canonical().to_string(), peer.port()),
            None => (String::new(), 0),
        };
        let info = json!({
            "server_port": session.local_port,
            "port": session.port,
            "remote_ip": address,
            "remote_port": port,
            "connect_time": session.connected_s,
            "last_recv_time": session.last_receive_s.get(),
            "last_send_time": session.last_send_s.get(),
            "worker_id": session.seat.get(),
            "uid": session.user.get(),
            "is_tls": session.is_tls,
            "is_open": session.is_open() && session.is_connected.get(),
            "recv_queued_bytes": session.unacknowledged_bytes.get(),
            "send_queued_bytes": session.output.borrow().pending().len(),
        });
        info.to_string().into_bytes()
    }

    fn list(&self, call: &StreamCall<'_>) -> Vec<u8> {
        let sessions = self.sessions.borrow();
        let after = sessions.range((Bound::Excluded(call.session), Bound::Unbounded));
        let open = after.filter(|(_, session)| session.is_connected.get() && session.is_open());
        let of_port =
            open.filter(|(_, session)| call.item == 0 || u64::from(session.port) + 1 == call.item);
        let most = usize::try_from(call.value.min(LIST_MAX)).unwrap_or(0);
        let ids: Vec<u64> = of_port.map(|(id, _)| *id).take(most).collect();
        json!(ids).to_string().into_bytes()
    }

    fn stats(&self) -> Vec<u8> {
        let counts = self.counts.get();
        let connections =
            self.sessions.borrow().values().filter(|one| one.is_connected.get()).count();
        let stats = json!({
            "connection_num": connections,
            "accept_count": counts.accepted,
            "close_count": counts.closed,
            "total_recv_bytes": counts.received_bytes,
            "total_send_bytes": counts.sent_bytes,
            "items": counts.items,
            "pending": self.pending(),
        });
        stats.to_string().into_bytes()
    }

    fn heartbeat(&self, closes: bool) -> Vec<u8> {
        let now_ms = now_ms();
        let is_silent = |session: &&Rc<Session>| {
            let idle_ms = session.settings.borrow().idle_ms;
            idle_ms > 0
                && !session.is_protected.get()
                && session.is_connected.get()
                && now_ms.saturating_sub(session.last_receive_ms.get()) >= idle_ms
        };
        let sessions = self.sessions.borrow();
        let silent: Vec<_> = sessions.values().filter(is_silent).take(LIST_MAX as usize).collect();
        if closes {
            silent.iter().for_each(|session| session.close(Closing::Flush));
        }
        let ids: Vec<u64> = silent.iter().map(|session| session.id).collect();
        json!(ids).to_string().into_bytes()
    }

    /// 0: it is closed; 1: it is open; 2: its client reads slowly, and an event follows when it has read.
    fn room(&self, key: (u64, u64), id: u64) -> Vec<u8> {
        let Some(session) = self.session(id).filter(|one| one.is_open() && one.is_connected.get())
        else {
            return b"0".to_vec();
        };
        if session.is_full() {
            self.announce_full(key, &session);
            return b"2".to_vec();
        }
        b"1".to_vec()
    }
}
