//! [`Logs`]: the logs of the server or of an app, and [`Sinks`]: the files that they share.
//!
//! Opened by each generation, and again after log rotation. Invariants: logs with the same target share one
//! sink; the event loop waits neither for a disk that opens a log nor for the spawner, which opens those of
//! root.

use outboard_buffer::Held;
use outboard_config::{ErrorLevel, Log as LogConfig, LogRotation, LogTarget};
use outboard_log::{
    AccessLog, ErrorLog, Level, Opener, Receiver, Rotation, Sink, SinkTarget, Target,
};
use outboard_reactor::Threads;
use std::fs::File;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Logs are opened one after the other.
static OPENERS: Threads = Threads::new(1);

/// The logs of the server or of one app.
#[derive(Debug)]
pub(crate) struct Logs {
    pub(crate) access: AccessLog,
    pub(crate) error: Rc<ErrorLog>,
    pub(crate) slow: Rc<ErrorLog>,
}

/// Sinks by target, so that logs that go to the same place share one buffer.
#[derive(Debug, Default)]
pub(crate) struct Sinks {
    opener: Opener,
    open: Vec<(Target, Rc<Sink>)>,
    /// Targets that another thread has opened.
    shared: Vec<Arc<SinkTarget>>,
}

impl Sinks {
    /// Sinks that use the targets that another thread has opened, so that their lines do not mix.
    pub(crate) fn new(opener: Opener, shared: &[Arc<SinkTarget>]) -> Self {
        Self { opener, open: Vec::new(), shared: shared.to_vec() }
    }

    fn get(&mut self, configured: &LogTarget, rotation: Option<Rotation>) -> io::Result<Rc<Sink>> {
        let target = target_of(configured);
        match self.find(&target) {
            Some(sink) => Ok(sink.clone()),
            None => {
                let file = target.open(&self.opener)?;
                Ok(self.add(target, file, rotation))
            }
        }
    }

    fn find(&self, target: &Target) -> Option<&Rc<Sink>> {
        self.open.iter().find(|(open, _)| open == target).map(|(_, sink)| sink)
    }

    /// Adds a target that another thread has opened; whether there is one.
    fn join(&mut self, target: &Target) -> bool {
        let found = self.shared.iter().find(|shared| shared.target() == target);
        let sink = found.map(|shared| Rc::new(Sink::of(shared)));
        self.open.extend(sink.iter().map(|sink| (target.clone(), sink.clone())));
        sink.is_some()
    }

    fn add(&mut self, target: Target, file: Option<File>, rotation: Option<Rotation>) -> Rc<Sink> {
        let shared = SinkTarget::new(target.clone(), self.opener.clone(), file, rotation);
        let sink = Rc::new(Sink::of(&shared));
        self.open.push((target, sink.clone()));
        sink
    }

    /// Opens the three logs of a section. Another thread waits for the disk and the spawner.
    ///
    /// # Errors
    /// The error of opening a file.
    pub(crate) async fn open_logs(&mut self, config: &LogConfig) -> io::Result<Logs> {
        for configured in [&config.access.path, &config.error.path, &config.slow.path] {
            let target = target_of(configured);
            if self.find(&target).is_none() && !self.join(&target) {
                let file = open(&target, &self.opener).await?;
                self.add(target, file, rotation_of(config));
            }
        }
        self.logs(config)
    }

    /// The three logs of a section.
    ///
    /// # Errors
    /// The error of opening a file that is not open yet.
    pub(crate) fn logs(&mut self, config: &LogConfig) -> io::Result<Logs> {
        let rotation = rotation_of(config);
        Ok(Logs {
            access: AccessLog::new(
                self.get(&config.access.path, rotation)?,
                config.access.format.clone(),
            ),
            error: Rc::new(ErrorLog::new(
                self.get(&config.error.path, rotation)?,
                level(config.error.level),
            )),
            slow: Rc::new(ErrorLog::new(self.get(&config.slow.path, rotation)?, Level::Debug)),
        })
    }

    /// Writes buffered lines, and counts those that still wait, whose memory is limited.
    pub(crate) fn flush(&self, waiting: &mut Held) {
        let room_bytes = waiting.account().limit_bytes() / self.open.len().max(1);
        self.all().for_each(|sink| {
            sink.set_room(room_bytes);
            sink.flush();
        });
        waiting.set(self.all().map(|sink| sink.waiting_bytes()).sum());
    }

    /// Every open sink.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Rc<Sink>> {
        self.open.iter().map(|(_, sink)| sink)
    }
}

/// Reopens the files of the sinks after log rotation; lines from then on go there.
pub(crate) async fn reopen(sinks: Vec<Rc<Sink>>) -> io::Result<()> {
    let mut outcome = Ok(());
    sinks.iter().for_each(|sink| sink.flush());
    for sink in sinks {
        let target = sink.target().clone();
        if !matches!(target.target(), Target::File(_)) {
            continue;
        }
        // Otherwise the old file stays in use.
        outcome = OPENERS.run(0, move || target.reopen()).await.and(outcome);
    }
    outcome
}

/// Renames the files that are too large or too old, and opens them again.
///
/// # Errors
/// The last one that cannot be renamed; its lines go on as before.
pub(crate) async fn rotate(sinks: Vec<Rc<Sink>>) -> io::Result<()> {
    let mut outcome = Ok(());
    for sink in sinks.into_iter().filter(|sink| sink.target().is_rotation_due()) {
        sink.flush();
        let target = sink.target().clone();
        outcome = OPENERS.run(0, move || target.rotate()).await.and(outcome);
    }
    outcome
}

fn target_of(configured: &LogTarget) -> Target {
    match configured {
        LogTarget::Off => Target::Off,
        LogTarget::Stdout => Target::Stdout,
        LogTarget::Stderr => Target::Stderr,
        LogTarget::File(path) => Target::File(path.clone()),
        LogTarget::Journal => Target::Messages(Receiver::Journal),
        LogTarget::SyslogUnix(path) => Target::Messages(Receiver::SyslogUnix(path.clone())),
        LogTarget::SyslogUdp(address) => Target::Messages(Receiver::SyslogUdp(*address)),
    }
}

fn rotation_of(config: &LogConfig) -> Option<Rotation> {
    let LogRotation { size_bytes, age_ms, keep } = config.rotate;
    let is_on = size_bytes > 0 || age_ms > 0;
    is_on.then_some(Rotation { size_bytes, age_ms, keep })
}

async fn open(target: &Target, opener: &Opener) -> io::Result<Option<File>> {
    if !matches!(target, Target::File(_)) {
        return Ok(None);
    }
    let (target, opener) = (target.clone(), opener.clone());
    OPENERS.run(0, move || target.open(&opener)).await
}

fn level(level: ErrorLevel) -> Level {
    match level {
        ErrorLevel::Error => Level::Error,
        ErrorLevel::Warn => Level::Warn,
        ErrorLevel::Info => Level::Info,
        ErrorLevel::Debug => Level::Debug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Site, in_loop};

    #[test]
    fn logs_with_the_same_target_share_a_sink() {
        in_loop(async {
            let log = "[log.access]\npath = \"all.log\"\n[log.error]\npath = \"all.log\"\n\
                       [log.slow]\npath = \"all.log\"\n";
            let site = Site::new(&[("a.txt", "a")], log);
            let files = site.gateway.sinks.borrow().all().filter(|sink| sink.is_on()).count();
            assert_eq!(files, 1);
            site.get("/a.txt").await;
            site.gateway.server.log(Level::Error, "an error");
            let all = site.log("all.log");
            assert!(all.contains("GET /a.txt") && all.contains("an error"), "{all}");
        });
    }
}
