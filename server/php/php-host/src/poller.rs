//! The waits of coroutines for descriptors (by epoll) and for timeouts.
//!
//! Used by [`crate::events`]. A waiter is a coroutine's index (low half) and a serial (high half).
//! Invariants: one coroutine at a time waits for a descriptor; a wait ends once, by a descriptor or
//! by its timeout, and leaves nothing behind.

use rustix::event::epoll;
use rustix::event::epoll::{EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::time::Duration;

/// Events per call of epoll_wait(2).
const BATCH: usize = 64;
/// The worker's bell, in place of a descriptor.
const BELL: u64 = u64::MAX;
/// Direct connections, in place of descriptors, from here on ([`crate::direct`]).
pub(crate) const DIRECT: u64 = 1 << 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Wait(u64),
    Timer(u64),
    /// A direct connection, by its number, and whether its client has closed its side.
    Direct(u32, bool),
}

/// Why a wait could not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitError {
    /// This waiter waits for the descriptor.
    InUse(u64),
    /// epoll cannot watch it: it is a file, or closed.
    Unwatchable,
}

/// The state of a descriptor.
#[derive(Debug, Default, Clone, Copy)]
struct Watched {
    /// 0: none.
    waiter: u64,
    events: u32,
    /// Whether it was added to epoll (it may have been closed since).
    is_added: bool,
}

#[derive(Debug, Default)]
struct Wait {
    name: u64,
    fds: Vec<RawFd>,
    until: Option<(u64, u64)>,
    active: bool,
    /// Whether a signal ends it.
    is_interruptible: bool,
}

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: Rc<OwnedFd>,
    watched: Vec<Watched>,
    waits: Vec<Wait>,
    /// By time in µs, then in order of insertion.
    times: BTreeMap<(u64, u64), Due>,
    arrivals: u64,
    watching: usize,
}

/// Monotonic time, µs.
pub(crate) fn now_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

impl Poller {
    /// Creates one that also wakes for `bell`.
    pub(crate) fn new(bell: impl AsFd) -> io::Result<Self> {
        let epoll = Rc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        epoll::add(&*epoll, bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Self {
            epoll,
            watched: Vec::new(),
            waits: Vec::new(),
            times: BTreeMap::new(),
            arrivals: 0,
            watching: 0,
        })
    }

    /// The epoll, for what is watched for longer than a wait.
    pub(crate) fn epoll(&self) -> &Rc<OwnedFd> {
        &self.epoll
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.watching > 0 || !self.times.is_empty()
    }

    /// Begins a wait for descriptors with their events of poll(2), and for a timeout.
    pub(crate) fn wait(
        &mut self,
        name: u64,
        fds: impl Iterator<Item = (RawFd, u32)>,
        timeout_us: Option<u64>,
        is_interruptible: bool,
    ) -> Result<(), WaitError> {
        let at = name as u32 as usize;
        if self.waits.len() <= at {
            self.waits.resize_with(at + 1, Wait::default);
        }
        debug_assert!(!self.waits[at].active, "a coroutine waits once at a time");
        self.waits[at] =
            Wait { name, active: true, is_interruptible, ..std::mem::take(&mut self.waits[at]) };
        self.waits[at].fds.clear();
        for (fd, events) in fds.filter(|(fd, _)| *fd >= 0) {
            if let Err(refused) = self.watch(name, fd, events) {
                self.cancel(name);
                return Err(refused);
            }
        }
        if let Some(timeout_us) = timeout_us {
            self.waits[at].until = Some(self.schedule(timeout_us, Due::Wait(name)));
        }
        Ok(())
    }

    fn schedule(&mut self, delay_us: u64, due: Due) -> (u64, u64) {
        self.arrivals += 1;
        let key = (now_us().saturating_add(delay_us), self.arrivals);
        self.times.insert(key, due);
        key
    }

    /// Starts a timer that is due once, after this delay.
    pub(crate) fn set_timer(&mut self, id: u64, delay_us: u64) {
        self.schedule(delay_us, Due::Timer(id));
    }

    fn watch(&mut self, name: u64, fd: RawFd, events: u32) -> Result<(), WaitError> {
        let at = fd as usize;
        if self.watched.len() <= at {
            self.watched.resize(at + 1, Watched::default());
        }
        let before = self.watched[at];
        if before.waiter != 0 && before.waiter != name {
            return Err(WaitError::InUse(before.waiter));
        }
        let events = if before.waiter == name { before.events | events } else { events };
        self.update_epoll(fd, events, before.is_added)?;
        if before.waiter == 0 {
            self.waits[name as u32 as usize].fds.push(fd);
            self.watching += 1;
        }
        self.watched[at] = Watched { waiter: name, events, is_added: true };
        Ok(())
    }

    /// One shot: after an event the descriptor stays in epoll without an interest.
    fn update_epoll(&self, fd: RawFd, events: u32, is_added: bool) -> Result<(), WaitError> {
        let flags = EventFlags::from_bits_retain(events) | EventFlags::ONESHOT;
        let data = EventData::new_u64(fd as u64);
        // SAFETY: borrowed only for the calls below. The script owns the descriptor and the process
        // is single-threaded here; the kernel refuses a closed one.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let add = || epoll::add(&*self.epoll, fd, data, flags);
        let modify = || epoll::modify(&*self.epoll, fd, data, flags);
        let updated = if is_added {
            modify().or_else(|error| if error == Errno::NOENT { add() } else { Err(error) })
        } else {
            add().or_else(|error| if error == Errno::EXIST { modify() } else { Err(error) })
        };
        updated.map_err(|_| WaitError::Unwatchable)
    }

    /// The waiter that reads from this descriptor; 0: none.
    pub(crate) fn reader(&self, fd: RawFd) -> u64 {
        const IN: u32 = EventFlags::IN.bits();
        let watched = usize::try_from(fd).ok().and_then(|at| self.watched.get(at));
        watched.map_or(0, |watched| if watched.events & IN != 0 { watched.waiter } else { 0 })
    }

    /// The descriptors of a coroutine's current wait.
    pub(crate) fn descriptors(&self, name: u64) -> &[RawFd] {
        match self.waits.get(name as u32 as usize) {
            Some(wait) if wait.active && wait.name == name => &wait.fds,
            _ => &[],
        }
    }

    /// Ends the wait, if it has not ended. The descriptor that fired needs no call of epoll_ctl(2).
    fn end(&mut self, name: u64, fired: Option<RawFd>) -> bool {
        let Some(wait) = self.waits.get_mut(name as u32 as usize) else { return false };
        if !wait.active || wait.name != name {
            return false;
        }
        wait.active = false;
        if let Some(key) = wait.until.take() {
            self.times.remove(&key);
        }
        let fds = std::mem::take(&mut wait.fds);
        for &fd in &fds {
            let watched = &mut self.watched[fd as usize];
            watched.waiter = 0;
            self.watching -= 1;
            if fired != Some(fd) {
                watched.is_added = false;
                // SAFETY: as in `update_epoll`; a closed descriptor has left epoll already.
                let fd = unsafe { BorrowedFd::borrow_raw(fd) };
                let _ = epoll::delete(&*self.epoll, fd);
            }
        }
        self.waits[name as u32 as usize].fds = fds;
        self.waits[name as u32 as usize].fds.clear();
        true
    }

    /// A handler of a signal has run: poll(2) and its kin fail with EINTR then.
    fn interrupt(&mut self, due: &mut Vec<Due>) {
        let is_ended = |wait: &&Wait| wait.active && wait.is_interruptible;
        let names: Vec<u64> = self.waits.iter().filter(is_ended).map(|wait| wait.name).collect();
        for name in names {
            self.cancel(name);
            due.push(Due::Wait(name));
        }
    }

    pub(crate) fn cancel(&mut self, name: u64) {
        self.end(name, None);
    }

    /// Ends all waits and timers.
    pub(crate) fn forget(&mut self) {
        if !self.is_busy() {
            return;
        }
        let waits: Vec<u64> =
            self.waits.iter().filter(|wait| wait.active).map(|wait| wait.name).collect();
        waits.into_iter().for_each(|name| self.cancel(name));
        self.times.clear();
    }

    /// Appends what has happened; if `may_block`, waits for it until the next timeout. Returns
    /// whether the bell rang.
    pub(crate) fn poll(&mut self, may_block: bool, due: &mut Vec<Due>) -> io::Result<bool> {
        let before = due.len();
        self.take_times(due);
        let timeout = if due.len() > before || !may_block {
            Some(Duration::ZERO)
        } else {
            self.times
                .first_key_value()
                .map(|((us, _), _)| Duration::from_micros(us.saturating_sub(now_us())))
        };
        let mut space = [const { MaybeUninit::uninit() }; BATCH];
        let timespec = timeout.map(|time| rustix::time::Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        let ready = match epoll::wait(&*self.epoll, &mut space, timespec.as_ref()) {
            Err(Errno::INTR) => {
                self.interrupt(due);
                return Ok(false);
            }
            result => result?.0,
        };
        let mut rung = false;
        let fired: Vec<(u64, EventFlags)> =
            ready.iter().map(|event| (event.data.u64(), event.flags)).collect();
        for (data, flags) in fired {
            if data == BELL {
                rung = true;
                continue;
            }
            if data >= DIRECT {
                let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
                due.push(Due::Direct((data - DIRECT) as u32, flags.intersects(ends)));
                continue;
            }
            let fd = data as RawFd;
            let name = self.watched.get(data as usize).map_or(0, |watched| watched.waiter);
            if name != 0 && self.end(name, Some(fd)) {
                due.push(Due::Wait(name));
            }
        }
        self.take_times(due);
        Ok(rung)
    }

    fn take_times(&mut self, due: &mut Vec<Due>) {
        if self.times.is_empty() {
            return;
        }
        let now = now_us();
        while let Some(entry) = self.times.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                Due::Wait(name) => {
                    self.waits[name as u32 as usize].until = None;
                    if self.end(name, None) {
                        due.push(Due::Wait(name));
                    }
                }
                other => due.push(other),
            }
        }
    }
}
