//! The event loop: polls tasks, polls the memory source, sleeps in epoll, dispatches readiness.
//!
//! Started by [`run`]. Invariant: no borrow of the loop's state is held while a task or a memory
//! source runs, so both may call anything of this crate.

use crate::budget;
use crate::executor::{
    Executor, Queue, Rank, RemoteQueue, TaskId, as_current, contain, current_task, is_contained,
};
use crate::sources::{Noticed, Sources, Token};
use crate::timers::Timers;
use crate::turns::Turns;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

const EVENTS_PER_TURN: usize = 512;
/// The interval between checks of deadlines: they are timeouts of seconds.
const SWEEP_MS: u64 = 20;
/// A wait of years is one without an end.
const LONGEST_SLEEP_MS: u64 = 1 << 40;
/// How often tasks and the memory source may wake each other before sockets get their turn.
const ROUNDS_PER_TURN: usize = 4;
/// The time per turn for all long tasks; at least one of them is polled.
const LATER_PER_TURN: Duration = Duration::from_millis(1);
const DOORBELL: u64 = u64::MAX;

/// The state of one event loop.
pub(crate) struct Reactor {
    pub(crate) epoll: OwnedFd,
    pub(crate) sources: RefCell<Sources>,
    pub(crate) executor: RefCell<Executor>,
    pub(crate) timers: RefCell<Timers>,
    /// When this turn began.
    now: Cell<Duration>,
    turns: Cell<Turns>,
    memory: RefCell<Option<Box<dyn MemorySource>>>,
    waiting_for_activity: RefCell<Vec<TaskId>>,
}

thread_local! {
    static REACTOR: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
    /// Beside the loop, because a request reads it thirty times.
    static NOW_MS: Cell<Option<NonZeroU64>> = const { Cell::new(None) };
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
    let main = Box::pin(async move { slot.set(Some(main.await)) });
    reactor.executor.borrow_mut().spawn(main, Rank::Foreground, false);
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
    spawn_ranked(future, Rank::Foreground);
}

/// Starts a task that is one of very many that a worker may start at once. All of these together have a
/// share of each turn, so that no client waits for all of them.
pub fn spawn_in_background(future: impl Future<Output = ()> + 'static) {
    spawn_ranked(future, Rank::Background);
}

fn spawn_ranked(future: impl Future<Output = ()> + 'static, rank: Rank) {
    // Futures are large: this one is moved once.
    let future: Pin<Box<dyn Future<Output = ()>>> = Box::pin(future);
    with(|reactor| reactor.executor.borrow_mut().spawn(future, rank, is_contained()));
}

/// Wakes a task, which is polled again in this turn.
pub fn wake(task: TaskId) {
    with(|reactor| reactor.executor.borrow_mut().wake(task));
}

/// Wakes a task of this thread's loop; false if the task is another loop's, or the loop is in the middle
/// of a change.
fn wake_on_thread(queue: &Arc<RemoteQueue>, task: TaskId) -> bool {
    let wake = |reactor: &Rc<Reactor>| {
        let mut executor = reactor.executor.try_borrow_mut().ok()?;
        executor.has_queue(queue).then(|| executor.wake(task))
    };
    let current =
        |current: &RefCell<Option<Rc<Reactor>>>| current.try_borrow().ok()?.as_ref().and_then(wake);
    // There is none while the thread ends.
    REACTOR.try_with(current).ok().flatten().is_some()
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

/// Waits until anything but a [`crate::sleep`] gives the loop work: a descriptor, memory or a deadline.
/// For work that is repeated while the loop is busy, and must not wake a loop that has nothing to do.
pub async fn activity() {
    let mut waits = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut waits, true) {
            return Poll::Ready(());
        }
        with(|reactor| reactor.waiting_for_activity.borrow_mut().push(current_task()));
        Poll::Pending
    })
    .await;
}

/// Monotonic milliseconds at the beginning of this turn.
///
/// # Panics
/// The thread has had no loop.
pub fn now_ms() -> u64 {
    NOW_MS.get().expect("the caller runs inside of `reactor::run`").get()
}

/// How many turns the loop of this thread has had, and how long they took.
pub fn turns() -> Turns {
    with(|reactor| reactor.turns.get())
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

fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The time that tasks see until the next turn begins, and the same in milliseconds.
fn begin_turn() -> (Duration, u64) {
    let now = monotonic();
    let now_ms = to_ms(now);
    // A clock that starts at zero with the machine has passed a millisecond long before.
    NOW_MS.set(NonZeroU64::new(now_ms.max(1)));
    (now, now_ms)
}

fn to_ms(time: Duration) -> u64 {
    time.as_secs() * 1000 + u64::from(time.subsec_millis())
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
        let remote = Arc::new(RemoteQueue::new(doorbell, wake_on_thread));
        Ok(Self {
            epoll,
            sources: RefCell::new(Sources::default()),
            executor: RefCell::new(Executor::new(remote)),
            timers: RefCell::new(Timers::default()),
            now: Cell::new(begin_turn().0),
            turns: Cell::default(),
            memory: RefCell::new(None),
            waiting_for_activity: RefCell::default(),
        })
    }

    fn turn_until<T>(&self, mut done: impl FnMut() -> Option<T>) -> io::Result<T> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_PER_TURN);
        let mut last_sweep_ms = 0;
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
            let due_ms = self.executor.borrow().earliest_deadline_ms();
            let next_sweep_ms = due_ms.max(last_sweep_ms + SWEEP_MS);
            self.sleep(&mut events, has_woken, next_sweep_ms)?;
            let (now, now_ms) = begin_turn();
            self.now.set(now);
            for event in &events {
                self.dispatch(event);
            }
            let mut executor = self.executor.borrow_mut();
            self.timers.borrow_mut().expire(now_ms, |task| executor.wake(task));
            let mut is_active = has_woken || !events.is_empty();
            if now_ms >= next_sweep_ms {
                is_active |= executor.sweep(now_ms);
                last_sweep_ms = now_ms;
            }
            if is_active {
                self.waiting_for_activity.borrow_mut().drain(..).for_each(|id| executor.wake(id));
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

    /// Polls long tasks, within their share of the turn.
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
        self.check_not_borrowed();
        let Some((id, mut polled)) = self.executor.borrow_mut().start_poll(queue) else { return };
        let mut context = Context::from_waker(&polled.waker);
        let is_contained = polled.is_contained;
        let mut poll = || as_current(id, || polled.future.as_mut().poll(&mut context));
        let (poll, was_long) = match is_contained {
            true => contain(poll).unwrap_or((Poll::Ready(()), false)),
            false => poll(),
        };
        match poll {
            Poll::Pending => {
                self.executor.borrow_mut().finish_poll(id, Some((polled, was_long)));
            }
            Poll::Ready(()) => {
                // The task is dropped before the table is borrowed, because destructors may call
                // the loop.
                let end = || as_current(id, || drop(polled)).0;
                match is_contained {
                    true => drop(contain(end)),
                    false => end(),
                }
                self.executor.borrow_mut().finish_poll(id, None);
            }
        }
    }

    /// What runs next may call anything of this crate.
    fn check_not_borrowed(&self) {
        debug_assert!(self.executor.try_borrow_mut().is_ok(), "the tasks are borrowed");
        debug_assert!(self.sources.try_borrow_mut().is_ok(), "the sources are borrowed");
        debug_assert!(self.timers.try_borrow_mut().is_ok(), "the timers are borrowed");
    }

    /// Moves the memory source out while it runs, so that it may call the loop.
    fn with_memory<T>(&self, act: impl FnOnce(&mut dyn MemorySource) -> T) -> Option<T> {
        self.check_not_borrowed();
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
        let now_ms = self.end_turn();
        let until_ms = next_sweep_ms.min(self.timers.borrow().next_ms().unwrap_or(u64::MAX));
        let wait_ms = match max_ms {
            0 => 0,
            _ => until_ms.saturating_sub(now_ms).min(max_ms),
        };
        let timeout = (wait_ms < LONGEST_SLEEP_MS).then(|| rustix::event::Timespec {
            tv_sec: (wait_ms / 1000) as i64,
            tv_nsec: (wait_ms % 1000 * 1_000_000) as _,
        });
        events.clear();
        let spare = rustix::buffer::spare_capacity(events);
        let slept = epoll::wait(&self.epoll, spare, timeout.as_ref());
        self.with_memory(|memory| memory.cancel_sleep());
        match slept {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts the turn; the monotonic milliseconds now.
    fn end_turn(&self) -> u64 {
        let now = monotonic();
        let mut turns = self.turns.get();
        turns.add(now.saturating_sub(self.now.get()));
        self.turns.set(turns);
        to_ms(now)
    }

    fn dispatch(&self, event: &epoll::Event) {
        let data = event.data.u64();
        if data == DOORBELL {
            self.executor.borrow_mut().collect_remote();
            return;
        }
        let token = Token::unpack(data);
        let noticed = self.sources.borrow_mut().notice(&self.epoll, token, event.flags);
        match noticed {
            Noticed::Nothing => {}
            Noticed::Task(task) => self.executor.borrow_mut().wake(task),
            Noticed::Bell(bell) => bell.ring(),
        }
    }
}

#[cfg(test)]
mod tests;
