//! Limits that change, and rejections that do not fill the log.

use super::*;
use crate::testing::{context, limits};
use outboard_log::{Opener, Sink, Target};
use outboard_reactor::run;
use std::path::PathBuf;

/// A log file of its own, removed at the end.
struct LogFile(PathBuf);

impl LogFile {
    fn new(name: &str) -> Self {
        let name = format!("outboard-http-server-{}-{name}.log", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn open(&self) -> Rc<ErrorLog> {
        let sink = Sink::open(Target::File(self.0.clone()), Opener::default()).unwrap();
        Rc::new(ErrorLog::new(Rc::new(sink), Level::Debug))
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn rejections_are_all_counted_and_logged_once_a_second() {
    run(async {
        let (file, context) = (LogFile::new("rejections"), context(limits()));
        context.reconfigure(limits(), file.open());
        for _ in 0..100 {
            context.reject("192.0.2.1", Reason::TooManyConnections);
        }
        let reasons = context.counters().reasons();
        assert_eq!((reasons.len(), reasons[0].count), (1, 100));
        assert_eq!(file.text().matches("client=192.0.2.1").count(), 1, "{}", file.text());
        context.rejections.set(Rejections { logged_ms: 1, ..context.rejections.get() });
        context.reject("192.0.2.2", Reason::TooManyConnections);
        let text = file.text();
        assert!(text.contains("client=192.0.2.2, and 99 others"), "{text}");
    })
    .unwrap();
}

#[test]
fn only_server_faults_are_errors_in_the_log() {
    run(async {
        let (file, context) = (LogFile::new("levels"), context(limits()));
        context.reconfigure(limits(), file.open());
        context.log_refusal(Reason::Internal, "one");
        context.log_refusal(Reason::BadRequest, "two");
        let text = file.text();
        let line = |of: &str| text.lines().find(|line| line.contains(of)).unwrap();
        assert!(line("one").to_lowercase().contains("error"), "{text}");
        assert!(!line("two").to_lowercase().contains("error"), "{text}");
    })
    .unwrap();
}

#[test]
fn limits_apply_from_the_next_request_on() {
    run(async {
        let context = context(limits());
        let before = context.head_limits();
        let changed = Limits { header_bytes: 123, header_count: 4, ..limits() };
        let log = context.error_log.borrow().clone();
        context.reconfigure(changed, log);
        let after = context.head_limits();
        assert_eq!((after.header_bytes, after.header_count), (123, 4));
        assert_eq!(after.request_line_bytes, before.request_line_bytes);
    })
    .unwrap();
}
