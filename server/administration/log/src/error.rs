//! The error log: events with their app, worker, request and reason.

use crate::reason::Reason;
use crate::sink::{Sink, push_line};
use crate::timestamp::{Wall, rfc3339};
use std::io::Write;
use std::rc::Rc;

/// Severity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for diagnosis.
    Debug,
    /// State changes of the server: started, reloaded, worker replaced.
    Info,
    /// A condition that looks wrong.
    Warn,
    /// A request or a worker failed.
    Error,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// The severity of RFC 5424.
    fn severity(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warn => 4,
            Self::Info => 6,
            Self::Debug => 7,
        }
    }

    /// From a severity of `syslog(3)`, as PHP reports it.
    pub fn from_syslog(severity: u8) -> Self {
        match severity {
            0..=3 => Self::Error,
            4 => Self::Warn,
            5..=6 => Self::Info,
            _ => Self::Debug,
        }
    }
}

/// One line of the error log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Event<'a> {
    /// The app that it belongs to.
    pub app: Option<&'a str>,
    /// Pid of the worker.
    pub worker: Option<i32>,
    /// The request.
    pub request: Option<u64>,
    /// The reason of a refused or failed request.
    pub reason: Option<Reason>,
    /// The message.
    pub text: &'a str,
}

/// Writes events above a level.
#[derive(Debug)]
pub struct ErrorLog {
    sink: Rc<Sink>,
    level: Level,
}

impl ErrorLog {
    /// A log of events from `level` on.
    pub fn new(sink: Rc<Sink>, level: Level) -> Self {
        Self { sink, level }
    }

    /// Writes one event.
    pub fn write(&self, level: Level, event: Event<'_>) {
        self.add(level, event);
        self.flush();
    }

    /// Whether events of this level are written.
    pub fn takes(&self, level: Level) -> bool {
        level >= self.level && self.sink.is_on()
    }

    /// Adds an event to the batch that the next [`Self::flush`] writes.
    pub fn add(&self, level: Level, event: Event<'_>) {
        if !self.takes(level) {
            return;
        }
        if self.sink.has_messages() {
            return self.sink.line(|out| write_message(out, level, event));
        }
        let time = rfc3339(Wall::now());
        self.sink.line(|out| write_line(out, &time, level, event));
    }

    /// Writes what was added.
    pub fn flush(&self) {
        self.sink.flush();
    }

    /// Writes something about the server itself.
    pub fn note(&self, level: Level, text: &str) {
        self.write(level, Event { text, ..Event::default() });
    }
}

fn write_line(out: &mut Vec<u8>, time: &str, level: Level, event: Event<'_>) {
    // Writing to a Vec does not fail.
    let _ = write!(out, "{time} {:<5} ", level.word());
    write_event(out, event);
}

/// The severity as in sd-daemon(3), and the event.
fn write_message(out: &mut Vec<u8>, level: Level, event: Event<'_>) {
    // As above.
    let _ = write!(out, "<{}>", level.severity());
    write_event(out, event);
}

fn write_event(out: &mut Vec<u8>, event: Event<'_>) {
    if let Some(app) = event.app {
        let _ = write!(out, "app={app} ");
    }
    if let Some(worker) = event.worker {
        let _ = write!(out, "worker={worker} ");
    }
    if let Some(request) = event.request {
        let _ = write!(out, "request={request:016x} ");
    }
    if let Some(reason) = event.reason {
        let _ = write!(out, "reason={} status={} ", reason.code(), reason.status());
    }
    // The end of the line needs no quotes, so that what it says can be copied.
    push_line(out, event.text.as_bytes());
}
