//! The event loop: polls tasks, polls the memory source, sleeps in epoll, dispatches readiness.
//!
//! Started by [`run`]. Invariant: no borrow of the loop's state is held while a task or a memory
//! source runs, so both may call anything of this crate.

use crate::budget;
use crate::executor::{
    Executor, Queue, RemoteQueue, TaskId, as_current, contain, current_task, is_contained,
};
use crate::sources::{Sources, Token};
use crate::timers::Timers;
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

const EVENTS_PER_TURN: usize = 512;
/// How often deadlines of tasks are checked: they are timeouts of seconds.
const SWEEP_MS: u64 = 20;
/// How often tasks and the memory source may wake each other before sockets get their turn.
const ROUNDS_PER_TURN: usize = 4;
/// The time per turn for all tasks that have spent their budget; at least one of them is polled.
const LATER_PER_TURN: Duration = Duration::from_millis(1);
const DOORBELL: u64 = u64::MAX;

/// The state of one event loop.
pub(crate) struct Reactor {
    pub(crate) epoll: OwnedFd,
    pub(crate) sources: RefCell<Sources>,
    pub(crate) executor: RefCell<Executor>,
    pub(crate) timers: RefCell<Timers>,
    now_ms: Cell<u64>,
    memory: RefCell<Option<Box<dyn MemorySource>>>,
}

thread_local! {
    static REACTOR: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
}

/// Calls `f` with the loop of this thread.
///
/// # Panics
/// The thread has no loop.
pub(crate) fn with<T>(f: impl FnOnce(&Reactor) -> T) -> T {
    REACTOR.with_borrow(|reactor| {
        f(reactor.as_ref().expect("the caller runs inside of `reactor::run`"))
    })
}

/// Runs the loop on this thread until `main` has finished.
///
/// # Errors
/// `epoll_create1(2)`, `eventfd(2)` or `epoll_pwait(2)` fails.
///
/// # Panics
/// The thread already runs a loop.
pub fn run<T: 'static>(main: impl Future<Output = T> + 'static) -> io::Result<T> {
    let reactor = Rc::new(Reactor::new()?);
    REACTOR.with_borrow_mut(|current| {
        assert!(current.is_none(), "a thread has one loop");
        *current = Some(reactor.clone());
    });
    let _loop_of_thread = LoopOfThread(&reactor);
    let result = Rc::new(Cell::new(None));
    let slot = result.clone();
    reactor.executor.borrow_mut().spawn(Box::pin(async move { slot.set(Some(main.await)) }), false);
    reactor.turn_until(|| result.take())
}

/// The thread has this loop until this is dropped, also by a panic of `main`.
struct LoopOfThread<'a>(&'a Reactor);

impl Drop for LoopOfThread<'_> {
    fn drop(&mut self) {
        // Tasks may own sources, whose drop needs the loop, so tasks are dropped first, and outside of
        // the executor, which their drop may call.
        self.0.memory.take();
        let tasks = self.0.executor.borrow_mut().take_tasks();
        drop(tasks);
        REACTOR.take();
    }
}

/// Starts a task.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    with(|reactor| reactor.executor.borrow_mut().spawn(Box::pin(future), is_contained()));
}

/// Wakes a task, which is polled again in this turn.
pub fn wake(task: TaskId) {
    with(|reactor| reactor.executor.borrow_mut().wake(task));
}

/// Yields to other tasks and to sockets. For loops over input that a peer can extend without end.
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

/// Counts work that takes about as long as copying so many bytes, and yields if the task has spent
/// its budget.
pub async fn share_turn(bytes: usize) {
    budget::spend(bytes);
    if budget::is_spent() {
        yield_now().await;
    }
}

/// Wakes every task: something changed that all of them check.
pub fn wake_all() {
    with(|reactor| reactor.executor.borrow_mut().wake_all());
}

/// Monotonic milliseconds at the beginning of this turn.
pub fn now_ms() -> u64 {
    with(|reactor| reactor.now_ms.get())
}

/// Events that arrive in memory instead of at a descriptor, such as frames in rings shared with
/// other processes. The loop polls the source when no task is ready; a peer rings a doorbell in
/// epoll only while the loop sleeps.
pub trait MemorySource {
    /// Processes events; true if that woke a task.
    fn look(&mut self) -> bool;
    /// Announces to the peers that the loop is about to sleep. Returns for how many milliseconds it
    /// may: 0 if there are events after all, `u64::MAX` if the doorbell announces all events.
    fn prepare_sleep(&mut self) -> u64;
    /// Announces that the loop is awake and polls by itself.
    fn cancel_sleep(&mut self);
}

/// Sets the memory source of the loop.
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
        let remote = Arc::new(RemoteQueue::new(doorbell));
        Ok(Self {
            epoll,
            sources: RefCell::new(Sources::default()),
            executor: RefCell::new(Executor::new(remote)),
            timers: RefCell::new(Timers::default()),
            now_ms: Cell::new(monotonic_ms()),
            memory: RefCell::new(None),
        })
    }

    fn turn_until<T>(&self, mut done: impl FnMut() -> Option<T>) -> io::Result<T> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_PER_TURN);
        let mut next_sweep_ms = 0;
        loop {
            let mut has_woken = true;
            for round in 0..ROUNDS_PER_TURN {
                self.poll_ready();
                if round == 0 {
                    self.poll_later();
                }
                if let Some(result) = done() {
                    return Ok(result);
                }
                has_woken = self.with_memory(|memory| memory.look()).unwrap_or(false);
                if !has_woken {
                    break;
                }
            }
            self.sleep(&mut events, has_woken, next_sweep_ms)?;
            let now_ms = monotonic_ms();
            self.now_ms.set(now_ms);
            for event in &events {
                self.dispatch(event);
            }
            let mut executor = self.executor.borrow_mut();
            self.timers.borrow_mut().expire(now_ms, |task| executor.wake(task));
            if now_ms >= next_sweep_ms {
                executor.sweep(now_ms);
                next_sweep_ms = now_ms + SWEEP_MS;
            }
        }
    }

    /// Polls the tasks that are ready now. Tasks that become ready meanwhile wait for the next
    /// turn, so that a task that wakes itself cannot starve sockets.
    fn poll_ready(&self) {
        let count = self.executor.borrow().ready_count();
        for _ in 0..count {
            self.poll_next(Queue::Ready);
        }
    }

    /// Polls tasks that have spent their budget, within their share of the turn.
    fn poll_later(&self) {
        let count = self.executor.borrow().later_count();
        if count == 0 {
            return;
        }
        let started = Instant::now();
        for _ in 0..count {
            self.poll_next(Queue::Later);
            if started.elapsed() >= LATER_PER_TURN {
                return;
            }
        }
    }

    fn poll_next(&self, queue: Queue) {
        let Some((id, mut polled)) = self.executor.borrow_mut().start_poll(queue) else { return };
        let mut context = Context::from_waker(&polled.waker);
        let is_contained = polled.is_contained;
        let mut poll = || as_current(id, || polled.future.as_mut().poll(&mut context));
        let poll = match is_contained {
            true => contain(poll).unwrap_or(Poll::Ready(())),
            false => poll(),
        };
        match poll {
            Poll::Pending => self.executor.borrow_mut().finish_poll(id, Some(polled)),
            Poll::Ready(()) => {
                // The task is dropped before the table is borrowed, because destructors may call
                // the loop.
                let end = || as_current(id, || drop(polled));
                match is_contained {
                    true => drop(contain(end)),
                    false => end(),
                }
                self.executor.borrow_mut().finish_poll(id, None);
            }
        }
    }

    /// Moves the memory source out while it runs, so that it may call the loop.
    fn with_memory<T>(&self, act: impl FnOnce(&mut dyn MemorySource) -> T) -> Option<T> {
        let mut memory = self.memory.take()?;
        let result = act(&mut *memory);
        self.memory.borrow_mut().get_or_insert(memory);
        Some(result)
    }

    fn sleep(
        &self,
        events: &mut Vec<epoll::Event>,
        has_woken: bool,
        next_sweep_ms: u64,
    ) -> io::Result<()> {
        let is_busy = has_woken || self.executor.borrow().has_ready();
        let max_ms = match is_busy {
            true => 0,
            false => self.with_memory(|memory| memory.prepare_sleep()).unwrap_or(u64::MAX),
        };
        let until_ms = next_sweep_ms.min(self.timers.borrow().next_ms().unwrap_or(u64::MAX));
        let wait_ms = match max_ms {
            0 => 0,
            _ => until_ms.saturating_sub(monotonic_ms()).min(max_ms),
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

    fn dispatch(&self, event: &epoll::Event) {
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
