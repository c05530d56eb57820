//! Tasks across reloads, restarts and upgrades: recovery from the journal, the successor, and the stop.
//!
//! A part of [`Tasks`], called by the server; after an upgrade by that of both processes. Invariants: a queued task is
//! in one queue only, that of the last successor; a task that runs is finished where it was started; a task whose
//! result a request waits for stays with the process of that request; what another process has not finished when it
//! ends is in the journal, if there is one.

use super::journal::RecoveredTask;
use super::replies::fail;
use super::successor::{TaskSuccessor, decode, encode};
use super::{STOPPING, Tasks, Unfinished};
use outboard_log::{Level, Wall};
use outboard_reactor::{now_ms, share_turn, spawn};
use outboard_ring::operation::Failure;
use std::rc::Rc;

impl Tasks {
    /// Recovers the tasks that the last gateway has not finished, unless `before` uses the same journal.
    pub fn resume(self: &Rc<Self>, before: Option<&Rc<Self>>) {
        if !self.continues(before) {
            self.recover();
        }
    }

    /// Continues with the unfinished tasks of `before`, if that uses the same journal.
    pub fn continues(&self, before: Option<&Rc<Self>>) -> bool {
        let (Some(journal), Some(before)) = (&self.journal, before) else { return false };
        let is_same = before.journal.as_ref().is_some_and(|theirs| theirs.is_same(journal));
        if is_same {
            self.unfinished.replace(before.unfinished.borrow().clone());
        }
        is_same
    }

    /// Recovers the tasks in the journal that another process has not finished, which has ended.
    pub fn recover(self: &Rc<Self>) {
        let Some(journal) = self.journal.clone() else { return };
        let (known, next_id) =
            (self.unfinished.borrow().borrow().clone(), self.current().next_id.get());
        let tasks = self.clone();
        spawn(async move {
            match journal.recover().await {
                Ok((mut recovered, invalid)) => {
                    // Those of this process, also if they were finished meanwhile.
                    recovered.retain(|(task, _)| task.id < next_id && !known.contains(&task.id));
                    tasks.enqueue_recovered(recovered, invalid).await;
                }
                Err(error) => {
                    tasks.log(Level::Error, &format!("cannot read the journal of tasks: {error}"));
                }
            }
        });
    }

    /// Queues recovered tasks. They may be numerous, and a reload may happen meanwhile.
    async fn enqueue_recovered(&self, recovered: Vec<RecoveredTask>, invalid: usize) {
        let (count, wall_ms) = (recovered.len(), Wall::now().unix_us / 1000);
        let last_id = recovered.iter().map(|(task, _)| task.id).max().unwrap_or(0);
        self.next_id.set(self.next_id.get().max(last_id + 1));
        for (task, due_ms) in recovered {
            share_turn(task.data.len()).await;
            let current = self.current();
            current.next_id.set(current.next_id.get().max(self.next_id.get()));
            current.unfinished.borrow().borrow_mut().insert(task.id);
            current.queue.borrow_mut().insert(task, now_ms() + due_ms.saturating_sub(wall_ms));
        }
        if count > 0 {
            self.log(Level::Info, &format!("{count} tasks of the last gateway were recovered"));
        }
        if invalid > 0 {
            let text = format!("{invalid} records in the journal of tasks are invalid");
            self.log(Level::Error, &text);
        }
        self.current().changed.set();
    }

    /// The queue is passed on to `successor`, and so are new tasks; running tasks are finished here.
    pub fn hand_over(&self, successor: &Rc<Self>) {
        successor.awaited.borrow_mut().extend(self.awaited.take());
        successor.next_id.set(successor.next_id.get().max(self.next_id.get()));
        self.successor.replace(Some(successor.clone()));
        self.pass_on();
        self.changed.set();
    }

    /// Passes the queue on to the successor, if there is one.
    pub(super) fn pass_on(&self) {
        if let Some(successor) = &*self.successor.borrow() {
            successor.queue.borrow_mut().take_over(&mut self.queue.borrow_mut());
            debug_assert_eq!(self.queue.borrow().waiting(), 0, "a task is in two queues");
            successor.changed.set();
            successor.pass_on();
            if successor.stopped.get() {
                successor.stop();
            }
        }
        self.pass_to_next_process();
    }

    /// Starts no more tasks, and logs how many are queued; running tasks are finished.
    pub fn stop(&self) {
        self.stopped.set(true);
        let unstarted = self.queue.borrow_mut().clear();
        for task in unstarted.values() {
            if let Some((requester, id)) = self.awaited.borrow_mut().remove(&task.id) {
                fail(&requester, id, Failure::Busy, STOPPING);
            }
        }
        if !unstarted.is_empty() {
            let (level, fate) = match self.journal {
                Some(_) => (Level::Info, "wait for the next start"),
                None => (Level::Warn, "are lost"),
            };
            self.log(level, &format!("{} tasks were not started and {fate}", unstarted.len()));
        }
        self.changed.set();
    }

    /// The last successor, which accepts tasks.
    pub(super) fn current(&self) -> Rc<Self> {
        match &*self.successor.borrow() {
            Some(successor) => successor.current(),
            None => self.weak_self.upgrade().expect("the caller holds it"),
        }
    }

    /// Starts no tasks until [`Tasks::begin`] or [`Tasks::leave_to`]: another process has them.
    pub fn hold(&self) {
        self.is_held.set(true);
    }

    /// Starts tasks. Those of `cron` that were due up to `left_at_ms` (Unix ms) were queued by another process.
    pub fn begin(&self, left_at_ms: u64) {
        self.left_at_ms.set(left_at_ms);
        self.is_held.set(false);
        self.changed.set();
    }

    /// Leaves all tasks to another process but those that run, and those whose result a request waits for; and
    /// those of `cron` that are due after `left_at_ms`.
    pub fn leave_to(&self, next: Rc<dyn TaskSuccessor>, left_at_ms: u64) {
        self.left_at_ms.set(left_at_ms);
        self.next_process.replace(Some(next));
        self.pass_on();
        self.is_held.set(false);
        self.changed.set();
    }

    /// Whether a task runs or is waited for.
    pub fn is_busy(&self) -> bool {
        self.queue.borrow().running() > 0 || !self.awaited.borrow().is_empty()
    }

    fn pass_to_next_process(&self) {
        let Some(next) = self.next_process.borrow().clone() else { return };
        let awaited = self.awaited.borrow();
        let left = self.queue.borrow_mut().take_all_but(|task| awaited.contains_key(&task.id));
        let (now_ms, wall_ms) = (now_ms(), Wall::now().unix_us / 1000);
        let unfinished: Unfinished = self.unfinished.borrow().clone();
        for (due_ms, task) in left {
            unfinished.borrow_mut().remove(&task.id);
            next.take(&self.app, encode(&task, wall_ms + due_ms.saturating_sub(now_ms)));
        }
    }

    /// Queues a task of the process before this one. False: its form is not known.
    pub fn inherit(&self, task: &[u8]) -> bool {
        let Some((task, due_ms)) = decode(task) else { return false };
        let current = self.current();
        current.next_id.set(current.next_id.get().max(task.id + 1));
        if current.journal.is_some() {
            current.unfinished.borrow().borrow_mut().insert(task.id);
        }
        let wait_ms = due_ms.saturating_sub(Wall::now().unix_us / 1000);
        current.queue.borrow_mut().insert(task, now_ms() + wait_ms);
        current.changed.set();
        current.pass_on();
        true
    }
}
