//! [`Sockets`]: the number of connections to all hosts, or to one origin, idle and busy, whichever loop they
//! belong to.
//!
//! Each loop's [`crate::connections`] and [`crate::origin_pool`] is a [`Member`]; each transport holds a
//! [`Socket`]. Invariants: the number never exceeds the limit; a task waits for a place only while a member has been asked to close an
//! idle connection for it, and members answer within a turn of their loops.

use crate::doorbell::Doorbell;
use crate::permits::Permits;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// The counter of connections and its limit.
#[derive(Debug)]
pub(crate) struct Sockets {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    places: Permits,
    /// By number of the member.
    posts: BTreeMap<u64, Post>,
    next_number: u64,
}

/// What members know of one, and ask of it.
#[derive(Debug)]
struct Post {
    /// Its idle connections. Only the member writes this.
    idle: Arc<AtomicUsize>,
    /// Closings that were asked for and not answered.
    asked: usize,
    doorbell: Arc<Doorbell>,
}

impl Post {
    /// Idle connections that are not asked for.
    fn spare(&self) -> usize {
        self.idle.load(Ordering::Relaxed).saturating_sub(self.asked)
    }
}

impl State {
    fn asked(&self) -> usize {
        self.posts.values().map(|post| post.asked).sum()
    }

    /// Tasks that wait although nothing is asked for them any more. The caller wakes them without the lock.
    fn surplus(&self) -> Vec<Waker> {
        self.places.last(self.places.waiting().saturating_sub(self.asked()))
    }
}

impl Sockets {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let places = Permits::new(most);
        let state = State { places, posts: BTreeMap::new(), next_number: 0 };
        Arc::new(Self { most, state: Mutex::new(state) })
    }

    /// Another loop takes part, which answers when this is rung.
    pub(crate) fn join(self: &Arc<Self>, doorbell: &Arc<Doorbell>) -> Rc<Member> {
        let idle = Arc::new(AtomicUsize::new(0));
        let mut state = self.lock();
        let number = state.next_number;
        state.next_number += 1;
        let post = Post { idle: idle.clone(), asked: 0, doorbell: doorbell.clone() };
        state.posts.insert(number, post);
        drop(state);
        Rc::new(Member { sockets: self.clone(), number, idle })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready with true once the place has been granted, with false if no member has an idle connection to
    /// close for it.
    fn poll_place(&self, place: u64, waker: &Waker) -> Poll<bool> {
        let mut state = self.lock();
        if state.places.poll(place, waker).is_ready() {
            return Poll::Ready(true);
        }
        if state.places.waiting() <= state.asked() {
            return Poll::Pending;
        }
        let post = state.posts.values_mut().filter(|post| post.spare() > 0);
        let Some(post) = post.max_by_key(|post| post.spare()) else { return Poll::Ready(false) };
        post.asked += 1;
        let doorbell = post.doorbell.clone();
        drop(state);
        doorbell.ring();
        Poll::Pending
    }
}

/// A loop that has connections.
#[derive(Debug)]
pub(crate) struct Member {
    sockets: Arc<Sockets>,
    number: u64,
    idle: Arc<AtomicUsize>,
}

impl Member {
    /// The limit of all members together.
    pub(crate) fn most(&self) -> usize {
        self.sockets.most
    }

    /// Counts one more connection, unless the limit is reached.
    fn take(self: &Rc<Self>) -> Option<Socket> {
        let is_free = self.sockets.lock().places.try_take();
        is_free.then(|| Socket { member: self.clone(), stage: Stage::Busy })
    }

    /// Counts one more. At the limit `close` closes an idle connection of this member, or returns false if
    /// none is idle; then another member is asked for that. `None` if none of them has any.
    pub(crate) async fn take_or_close(self: &Rc<Self>, close: impl Fn() -> bool) -> Option<Socket> {
        loop {
            if let Some(socket) = self.take() {
                return Some(socket);
            }
            if !close() {
                return self.take_from_others().await;
            }
        }
    }

    /// Waits until another member has closed an idle connection for this one; `None` if there is none.
    async fn take_from_others(self: &Rc<Self>) -> Option<Socket> {
        let place = self.sockets.lock().places.join();
        let mut socket = Socket { member: self.clone(), stage: Stage::Waiting(place) };
        let poll = poll_fn(|context| self.sockets.poll_place(place, context.waker()));
        if !poll.await {
            return None;
        }
        socket.stage = Stage::Busy;
        Some(socket)
    }

    /// Closes as many idle connections as were asked for. `close` closes one, or returns false if none is
    /// idle; then another member is asked.
    pub(crate) fn answer(&self, close: impl Fn() -> bool) {
        let asked = self.sockets.lock().posts[&self.number].asked;
        let mut closings = 0..asked;
        while closings.next().is_some() && self.sockets.lock().places.waiting() > 0 && close() {}
        if asked > 0 {
            let mut state = self.sockets.lock();
            if let Some(post) = state.posts.get_mut(&self.number) {
                post.asked -= asked;
            }
            let surplus = state.surplus();
            drop(state);
            surplus.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.sockets.lock();
        state.posts.remove(&self.number);
        let surplus = state.surplus();
        drop(state);
        surplus.into_iter().for_each(Waker::wake);
    }
}

/// A connection that counts until this is dropped, or a place in the queue for one.
#[derive(Debug)]
pub(crate) struct Socket {
    member: Rc<Member>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting(u64),
    Busy,
    Idle,
}

impl Socket {
    /// Another member may have it closed from now on.
    pub(crate) fn rest(&mut self) {
        if self.stage == Stage::Busy {
            self.stage = Stage::Idle;
            self.member.idle.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It is in use again.
    pub(crate) fn resume(&mut self) {
        if self.stage == Stage::Idle {
            self.stage = Stage::Busy;
            self.member.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Under the lock, so that no task sees a connection that is neither idle nor closed.
        let mut state = self.member.sockets.lock();
        if self.stage == Stage::Idle {
            self.member.idle.fetch_sub(1, Ordering::Relaxed);
        }
        let next = match self.stage {
            Stage::Waiting(place) => state.places.leave(place),
            Stage::Busy | Stage::Idle => state.places.release(),
        };
        drop(state);
        next.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
