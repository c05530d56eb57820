//! [`TaskTracer`]: the traces of tasks.
//!
//! Implemented by the gateway, whose tracer exports them. Invariant: an attempt is one span (by its type:
//! [`Traced::end`] consumes it), part of the trace of the request that has queued the task; tasks of the clock and of
//! an earlier gateway begin their own.

use super::queue::{Attempt, Task};
use outboard_log::Wall;
use outboard_ring::request::TraceDetail;
use outboard_trace::{Kind, Scope, Span, TraceContext};
use std::fmt::Debug;
use std::rc::Rc;

/// Begins and exports the traces of attempts.
pub trait TaskTracer: Debug {
    /// An attempt begins.
    fn begin(&self, parent: Option<TraceContext>) -> Scope;

    /// What the worker has to report.
    fn detail(&self, scope: &Scope) -> TraceDetail;

    /// An attempt has ended; only if it is exported, its span is described.
    fn end(
        &self,
        scope: &Scope,
        times_us: (u64, u64),
        has_failed: bool,
        describe: &dyn Fn() -> Span,
    );
}

/// The trace of an attempt.
pub(super) struct Traced {
    tracer: Rc<dyn TaskTracer>,
    scope: Scope,
    started: Wall,
}

impl Traced {
    /// An attempt at a task begins.
    pub(super) fn begin(tracer: Rc<dyn TaskTracer>, task: &Task) -> Self {
        let scope = tracer.begin(task.trace);
        Self { tracer, scope, started: Wall::now() }
    }

    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(super) fn detail(&self) -> TraceDetail {
        self.tracer.detail(&self.scope)
    }

    pub(super) fn end(self, app: &str, task: &Task, attempt: Attempt) {
        let has_failed = attempt != Attempt::Done;
        let describe = || {
            let name = String::from_utf8_lossy(&task.name).into_owned();
            Span::new(self.scope.span_id(), Kind::Consumer, name)
                .with("outboard.app", app.to_owned())
                .with("outboard.task", format!("{:016x}", task.id))
                .with("outboard.attempt", u64::from(task.attempts))
        };
        let times_us = (self.started.unix_us, Wall::now().unix_us);
        self.tracer.end(&self.scope, times_us, has_failed, &describe);
    }
}
