//! The loop: poll tasks, look at memory, sleep in epoll, hand out readiness.
//!
//! Called through [`run`] by whoever owns the thread. Invariant: no borrow of the loop's state is
//! held while a task or a memory source runs, so both may call anything of this crate.

use crate::budget;
use crate::executor::{
    Executor, Queue, RemoteQueue, TaskId, as_current, contain, current_task, is_contained,
};
use crate::source::{Sources, Token};
use crate::timer::Timers;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

const EVENTS_A_TURN: usize = 512;
/// How often deadlines of tasks are looked at: they are time-outs of seconds.
const SWEEP_MS: u64 = 20;
/// How often tasks and the memory source may give each other work before the sockets' turn.
const ROUNDS_A_TURN: usize = 4;
/// What all tasks that have spent their budget may take of a turn; one of them always goes on.
const LATER_A_TURN: Duration = Duration::from_millis(1);
const DOORBELL: u64 = u64::MAX;

/// The state of one loop.
pub(crate) struct Reactor {
    pub(crate) epoll: OwnedFd,
    pub(crate) sources: RefCell<Sources>,
    pub(crate) executor: RefCell<Executor>,
    pub(crate) timers: RefCell<Timers>,
    now_ms: Cell<u64>,
    memory: RefCell<Option<Box<dyn MemorySource>>>,
    doorbell: OwnedFd,
}

thread_local! {
    static REACTOR: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
}

/// Gives access to the thread's loop.
///
/// # Panics
/// On a thread without one.
pub(crate) fn with<T>(f: impl FnOnce(&Reactor) -> T) -> T {
    REACTOR.with_borrow(|reactor| f(reactor.as_ref().expect("called inside of `reactor::run`")))
}

/// Runs the loop on this thread until `main` is done.
///
/// # Errors
/// What `epoll_create1(2)`, `eventfd(2)` or `epoll_pwait(2)` report.
///
/// # Panics
/// When the thread runs a loop already.
pub fn run<T: 'static>(main: impl Future<Output = T> + 'static) -> io::Result<T> {
    let reactor = Rc::new(Reactor::new()?);
    REACTOR.with_borrow_mut(|current| {
        assert!(current.is_none(), "one loop a thread");
        *current = Some(reactor.clone());
    });
    let result = Rc::new(Cell::new(None));
    let slot = result.clone();
    reactor.executor.borrow_mut().spawn(Box::pin(async move { slot.set(Some(main.await)) }), false);
    let outcome = reactor.turn_until(|| result.take());
    // Tasks may own sources that look for their loop when dropped: end them while it exists.
    reactor.memory.take();
    let left = std::mem::replace(
        &mut *reactor.executor.borrow_mut(),
        Executor::new(Arc::new(RemoteQueue::new(reactor.doorbell.try_clone()?))),
    );
    drop(left);
    REACTOR.take();
    outcome
}

/// Adds a task to the loop.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    with(|reactor| reactor.executor.borrow_mut().spawn(Box::pin(future), is_contained()));
}

/// Has a task polled again in this turn.
pub fn wake(task: TaskId) {
    with(|reactor| reactor.executor.borrow_mut().wake(task));
}

/// Lets the others go on, the sockets among them, before the current task does: for whoever works
/// through what somebody else may fill without end.
pub async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        let task = current_task();
        with(|reactor| reactor.executor.borrow_mut().wake_later(task));
        Poll::Pending
    })
    .await;
}

/// Counts work that takes about as long as moving so many bytes would, and lets others go on when
/// the task has had its share of the turn.
pub async fn share_turn(bytes: usize) {
    budget::spend(bytes);
    if budget::is_spent() {
        yield_now().await;
    }
}

/// Has every task polled again in this turn: something changed that all look at.
pub fn wake_all() {
    with(|reactor| reactor.executor.borrow_mut().wake_all());
}

/// Monotonic milliseconds as of the beginning of this turn.
pub fn now_ms() -> u64 {
    with(|reactor| reactor.now_ms.get())
}

/// News that come through memory and not through a descriptor, such as rings shared with other
/// processes. The loop looks at them when no task wants to be polled; who brings news rings a
/// doorbell in epoll only while the loop sleeps.
pub trait MemorySource {
    /// Acts on what is there; true when that woke a task.
    fn look(&mut self) -> bool;
    /// The loop is about to block: announces it to those who bring news. For how many milliseconds
    /// it may at most; 0 when there is something to look at after all, `u64::MAX` when the doorbell
    /// will tell of everything.
    fn prepare_sleep(&mut self) -> u64;
    /// The loop is awake again and looks by itself.
    fn cancel_sleep(&mut self);
}

/// Has the loop look at `source` from now on.
pub fn watch_memory(source: impl MemorySource + 'static) {
    with(|reactor| *reactor.memory.borrow_mut() = Some(Box::new(source)));
}

fn monotonic_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

impl Reactor {
    fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(
            &epoll,
            &doorbell,
            epoll::EventData::new_u64(DOORBELL),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        let remote = Arc::new(RemoteQueue::new(doorbell.try_clone()?));
        Ok(Self {
            epoll,
            sources: RefCell::new(Sources::default()),
            executor: RefCell::new(Executor::new(remote)),
            timers: RefCell::new(Timers::default()),
            now_ms: Cell::new(monotonic_ms()),
            memory: RefCell::new(None),
            doorbell,
        })
    }

    fn turn_until<T>(&self, mut done: impl FnMut() -> Option<T>) -> io::Result<T> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_A_TURN);
        let mut next_sweep_ms = 0;
        loop {
            let mut made_work = true;
            for round in 0..ROUNDS_A_TURN {
                self.poll_ready();
                if round == 0 {
                    self.poll_later();
                }
                if let Some(result) = done() {
                    return Ok(result);
                }
                made_work = self.with_memory(|memory| memory.look()).unwrap_or(false);
                if !made_work {
                    break;
                }
            }
            self.sleep(&mut events, made_work, next_sweep_ms)?;
            let now_ms = monotonic_ms();
            self.now_ms.set(now_ms);
            for event in &events {
                self.hand_out(event);
            }
            let mut executor = self.executor.borrow_mut();
            self.timers.borrow_mut().expire(now_ms, |task| executor.wake(task));
            if now_ms >= next_sweep_ms {
                executor.sweep(now_ms);
                next_sweep_ms = now_ms + SWEEP_MS;
            }
        }
    }

    /// Polls the tasks that are ready now; those that become ready meanwhile wait for the next
    /// turn, so that a task that wakes itself cannot keep the loop from its sockets.
    fn poll_ready(&self) {
        let count = self.executor.borrow().ready_count();
        for _ in 0..count {
            self.poll_next(Queue::Ready);
        }
    }

    /// Polls tasks that have spent their budget before, until they have had their part of the turn.
    fn poll_later(&self) {
        let count = self.executor.borrow().later_count();
        if count == 0 {
            return;
        }
        let started = Instant::now();
        for _ in 0..count {
            self.poll_next(Queue::Later);
            if started.elapsed() >= LATER_A_TURN {
                return;
            }
        }
    }

    fn poll_next(&self, queue: Queue) {
        let Some((id, mut lent)) = self.executor.borrow_mut().start_poll(queue) else { return };
        let mut context = Context::from_waker(&lent.waker);
        let is_contained = lent.is_contained;
        let mut poll = || as_current(id, || lent.future.as_mut().poll(&mut context));
        let poll = match is_contained {
            true => contain(poll).unwrap_or(Poll::Ready(())),
            false => poll(),
        };
        match poll {
            Poll::Pending => self.executor.borrow_mut().finish_poll(id, Some(lent)),
            Poll::Ready(()) => {
                // Dropped before the table is borrowed: its destructors may call the loop.
                let end = || as_current(id, || drop(lent));
                match is_contained {
                    true => drop(contain(end)),
                    false => end(),
                }
                self.executor.borrow_mut().finish_poll(id, None);
            }
        }
    }

    /// Lends the memory source out, so that it may call the loop.
    fn with_memory<T>(&self, act: impl FnOnce(&mut dyn MemorySource) -> T) -> Option<T> {
        let mut memory = self.memory.take()?;
        let result = act(&mut *memory);
        self.memory.borrow_mut().get_or_insert(memory);
        Some(result)
    }

    fn sleep(
        &self,
        events: &mut Vec<epoll::Event>,
        made_work: bool,
        next_sweep_ms: u64,
    ) -> io::Result<()> {
        let busy = made_work || self.executor.borrow().has_ready();
        let most_ms = match busy {
            true => 0,
            false => self.with_memory(|memory| memory.prepare_sleep()).unwrap_or(u64::MAX),
        };
        let until_ms = next_sweep_ms.min(self.timers.borrow().next_ms().unwrap_or(u64::MAX));
        let wait_ms = match most_ms {
            0 => 0,
            _ => until_ms.saturating_sub(monotonic_ms()).min(most_ms),
        };
        let timeout = rustix::event::Timespec {
            tv_sec: (wait_ms / 1000) as i64,
            tv_nsec: (wait_ms % 1000 * 1_000_000) as _,
        };
        events.clear();
        let slept =
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout));
        self.with_memory(|memory| memory.cancel_sleep());
        match slept {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn hand_out(&self, event: &epoll::Event) {
        let data = event.data.u64();
        if data == DOORBELL {
            self.executor.borrow_mut().collect_remote();
            return;
        }
        let token = Token::unpack(data);
        let woken = self.sources.borrow_mut().notice(&self.epoll, token, event.flags);
        if let Some(task) = woken {
            self.executor.borrow_mut().wake(task);
        }
    }
}

#[cfg(test)]
mod tests;
