//! [`ScopedTask`]: a task that ends when its handle is dropped.
//!
//! For requests that may be cancelled: dropping the handle drops the task's future, connections and
//! permits included.

use outboard_reactor::{TaskId, current_task, spawn, spawn_in_background, wake};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// The handle of a task; dropping it cancels the task.
///
/// # Examples
///
/// ```
/// use outboard_upstream::ScopedTask;
/// use std::rc::Rc;
///
/// outboard_reactor::run(async {
///     let connection = Rc::new("held by the task");
///     let held = connection.clone();
///     let task = ScopedTask::spawn(async move {
///         std::future::pending::<()>().await;
///         drop(held);
///     });
///     drop(task);
///     while Rc::strong_count(&connection) > 1 {
///         outboard_reactor::sleep(1).await;
///     }
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ScopedTask {
    state: Rc<State>,
}

#[derive(Debug, Default)]
struct State {
    cancelled: Cell<bool>,
    task: Cell<Option<TaskId>>,
}

impl ScopedTask {
    /// Spawns the task.
    pub fn spawn(work: impl Future<Output = ()> + 'static) -> Self {
        let state = Rc::new(State::default());
        spawn(state.clone().run(work));
        Self { state }
    }

    /// Spawns the task as one of very many that a worker may start at once
    /// ([`spawn_in_background`]).
    pub fn spawn_in_background(work: impl Future<Output = ()> + 'static) -> Self {
        let state = Rc::new(State::default());
        spawn_in_background(state.clone().run(work));
        Self { state }
    }
}

impl State {
    async fn run(self: Rc<Self>, work: impl Future<Output = ()>) {
        let mut work = pin!(work);
        poll_fn(|context| {
            if self.cancelled.get() {
                return Poll::Ready(());
            }
            self.task.set(Some(current_task()));
            work.as_mut().poll(context)
        })
        .await;
    }
}

impl Drop for ScopedTask {
    fn drop(&mut self) {
        self.state.cancelled.set(true);
        if let Some(task) = self.state.task.take() {
            wake(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::{run, sleep};

    struct Dropped(Rc<Cell<u32>>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn a_cancelled_task_is_dropped_whether_started_or_not() {
        run(async {
            let dropped = Rc::new(Cell::new(0));
            let work = |dropped: &Rc<Cell<u32>>| {
                let mark = Dropped(dropped.clone());
                async move {
                    std::future::pending::<()>().await;
                    drop(mark);
                }
            };
            drop(ScopedTask::spawn(work(&dropped)));
            let started = ScopedTask::spawn(work(&dropped));
            while dropped.get() < 1 {
                sleep(1).await;
            }
            drop(started);
            while dropped.get() < 2 {
                sleep(1).await;
            }
        })
        .unwrap();
    }
}
