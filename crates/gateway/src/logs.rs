//! [`Logs`]: the logs of the server or of an app, and [`Sinks`]: the files that they share.
//!
//! Opened by each generation. Invariant: logs with the same target share one sink.

use outboard_buffer::Held;
use outboard_config::{AccessFormat, ErrorLevel, Log as LogConfig, LogTarget};
use outboard_log::{AccessLog, ErrorLog, Level, Opener, Sink, Target};
use std::io;
use std::rc::Rc;

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
}

impl Sinks {
    pub(crate) fn new(opener: Opener) -> Self {
        Self { opener, open: Vec::new() }
    }

    fn get(&mut self, configured: &LogTarget) -> io::Result<Rc<Sink>> {
        let target = match configured {
            LogTarget::Off => Target::Off,
            LogTarget::Stdout => Target::Stdout,
            LogTarget::Stderr => Target::Stderr,
            LogTarget::File(path) => Target::File(path.clone()),
        };
        if let Some((_, sink)) = self.open.iter().find(|(open, _)| *open == target) {
            return Ok(sink.clone());
        }
        let sink = Rc::new(Sink::open(target.clone(), self.opener.clone())?);
        self.open.push((target, sink.clone()));
        Ok(sink)
    }

    /// Opens the three logs of a section.
    ///
    /// # Errors
    /// The error of opening a file.
    pub(crate) fn logs(&mut self, config: &LogConfig) -> io::Result<Logs> {
        let json = config.access.format == AccessFormat::Json;
        Ok(Logs {
            access: AccessLog::new(self.get(&config.access.path)?, json),
            error: Rc::new(ErrorLog::new(self.get(&config.error.path)?, level(config.error.level))),
            slow: Rc::new(ErrorLog::new(self.get(&config.slow.path)?, Level::Debug)),
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
