//! [`Exporter`]: sends spans to the collector, by OTLP over HTTP.
//!
//! Owned by the tracer; a task of its own sends one batch at a time. Invariants: a collector that is slow,
//! gone or refuses costs a bounded amount of memory and no request waits for it; what is not exported is
//! counted.

use flate2::Compression;
use flate2::write::GzEncoder;
use outboard_config::{ExportCompression, Tracing};
use outboard_log::{ErrorLog, Level};
use outboard_reactor::{Event, now_ms, on_cpu_thread, sleep, spawn, with_deadline};
use outboard_trace::{
    Backoff, Batch, Ids, PartialSuccess, Resource, SpanQueue, is_retryable, request, retry_after_ms,
};
use outboard_upstream::{Client, Error, Request, RequestHeaders, Url};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::rc::Rc;

/// Time for the last exports when the server stops.
const LAST_MS: u64 = 2_000;
/// The largest response of a collector that is read.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;
/// Spans shrink to a fifth with the fastest level, to a sixth with the usual one.
const GZIP_LEVEL: u32 = 1;

/// Counts of spans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Exported {
    /// Spans that the collector has accepted.
    pub(crate) spans: u64,
    /// Spans that were dropped.
    pub(crate) dropped: u64,
    /// Spans that the collector rejected from requests that it accepted.
    pub(crate) rejected: u64,
    /// Attempts that failed.
    pub(crate) failures: u64,
    /// Size of the spans that wait.
    pub(crate) held_bytes: u64,
}

impl Exported {
    /// With those of another thread.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            spans: self.spans + other.spans,
            dropped: self.dropped + other.dropped,
            rejected: self.rejected + other.rejected,
            failures: self.failures + other.failures,
            held_bytes: self.held_bytes + other.held_bytes,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Exporter(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: RefCell<SpanQueue>,
    /// There are spans.
    has_some: Event,
    /// A batch is complete, or the exporter is closed.
    is_due: Event,
    is_closed: Cell<bool>,
    has_ended: Event,
    spans: Cell<u64>,
    rejected: Cell<u64>,
    failures: Cell<u64>,
}

impl Exporter {
    pub(super) fn start(
        settings: &Tracing,
        ids: &Rc<Ids>,
        client: &Rc<Client>,
        log: &Rc<ErrorLog>,
        threads: usize,
    ) -> Self {
        let limit_bytes = usize::try_from(settings.buffer_bytes).unwrap_or(usize::MAX);
        let shared = Rc::new(Shared {
            queue: RefCell::new(SpanQueue::new(limit_bytes / threads.max(1))),
            has_some: Event::default(),
            is_due: Event::default(),
            is_closed: Cell::new(false),
            has_ended: Event::default(),
            spans: Cell::new(0),
            rejected: Cell::new(0),
            failures: Cell::new(0),
        });
        let attributes = vec![
            ("service.name".to_owned(), settings.service_name.clone()),
            ("telemetry.sdk.name".to_owned(), "outboard".to_owned()),
            ("process.pid".to_owned(), std::process::id().to_string()),
        ];
        let task = Task {
            shared: shared.clone(),
            settings: settings.clone(),
            resource: Resource { attributes, version: env!("CARGO_PKG_VERSION") },
            ids: ids.clone(),
            client: client.clone(),
            log: log.clone(),
            is_failing: Cell::new(false),
            is_rejecting: Cell::new(false),
        };
        spawn(task.run());
        Self(shared)
    }

    /// Adds encoded spans.
    pub(super) fn add(&self, entries: &[u8], spans: u64) {
        let is_complete = self.0.queue.borrow_mut().add(entries, spans);
        self.0.has_some.set();
        if is_complete {
            self.0.is_due.set();
        }
    }

    pub(super) fn counts(&self) -> Exported {
        let queue = self.0.queue.borrow();
        Exported {
            spans: self.0.spans.get(),
            dropped: queue.dropped(),
            rejected: self.0.rejected.get(),
            failures: self.0.failures.get(),
            held_bytes: queue.held_bytes() as u64,
        }
    }

    pub(super) async fn finish(&self) {
        self.0.close();
        // What is not exported until then is lost with the process.
        let _ = with_deadline(now_ms() + LAST_MS, self.0.has_ended.wait()).await;
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Shared {
    fn close(&self) {
        self.is_closed.set(true);
        self.has_some.set();
        self.is_due.set();
    }
}

/// How an attempt ended.
enum Outcome {
    /// Except for these.
    Accepted(Option<PartialSuccess>),
    /// It may succeed later; the collector's own pause.
    Later(String, Option<u64>),
    Refused(String),
}

/// The exporter's task.
struct Task {
    shared: Rc<Shared>,
    settings: Tracing,
    resource: Resource,
    ids: Rc<Ids>,
    client: Rc<Client>,
    log: Rc<ErrorLog>,
    is_failing: Cell<bool>,
    is_rejecting: Cell<bool>,
}

impl Task {
    async fn run(self) {
        loop {
            self.shared.has_some.wait().await;
            let until_ms = now_ms() + self.settings.delay_ms;
            // The delay has passed, or a batch is complete.
            let _ = with_deadline(until_ms, self.shared.is_due.wait()).await;
            loop {
                let next = self.shared.queue.borrow_mut().take();
                let Some(batch) = next else { break };
                self.export(batch).await;
            }
            if self.shared.is_closed.get() && self.shared.queue.borrow().is_empty() {
                return self.shared.has_ended.set();
            }
        }
    }

    async fn export(&self, batch: Batch) {
        let mut backoff = Backoff::default();
        let accepted = loop {
            let outcome = match self.send(&batch).await {
                Ok(outcome) => outcome,
                Err(error) => Outcome::Later(error.message, None),
            };
            let (why, pause_ms) = match outcome {
                Outcome::Accepted(partial) => break Some(partial.unwrap_or_default()),
                Outcome::Later(why, pause_ms) => (why, Some(pause_ms)),
                Outcome::Refused(why) => (why, None),
            };
            self.report(&why);
            let pause_ms = pause_ms.and_then(|own| backoff.next_ms(own, self.ids.number()));
            let Some(pause_ms) = pause_ms.filter(|_| !self.shared.is_closed.get()) else {
                break None;
            };
            self.pause(pause_ms).await;
        };
        let is_dropped = accepted.is_none();
        if let Some(partial) = accepted {
            let rejected = partial.rejected_spans.min(batch.spans);
            self.shared.spans.update(|spans| spans + batch.spans - rejected);
            self.shared.rejected.update(|all| all + rejected);
            self.report_partial(rejected, &partial.message);
            if self.is_failing.replace(false) {
                self.log.note(Level::Info, "tracing: the collector accepts spans again");
            }
        }
        self.shared.queue.borrow_mut().release(batch, is_dropped);
    }

    /// Waits, unless the server stops.
    async fn pause(&self, pause_ms: u64) {
        let until_ms = now_ms() + pause_ms;
        while !self.shared.is_closed.get() && now_ms() < until_ms {
            sleep((until_ms - now_ms()).min(100)).await;
        }
    }

    /// One line for each outage.
    fn report(&self, why: &str) {
        self.shared.failures.set(self.shared.failures.get() + 1);
        if !self.is_failing.replace(true) {
            let text = format!("tracing: {} does not accept spans: {why}", self.settings.endpoint);
            self.log.note(Level::Warn, &text);
        }
    }

    /// One line when it begins.
    fn report_partial(&self, rejected: u64, message: &str) {
        let is_rejecting = rejected > 0 || !message.is_empty();
        if !self.is_rejecting.replace(is_rejecting) && is_rejecting {
            let endpoint = &self.settings.endpoint;
            let text = match rejected {
                0 => {
                    format!("tracing: {endpoint} has accepted all spans, with a warning: {message}")
                }
                _ => format!("tracing: {endpoint} has rejected {rejected} spans: {message}"),
            };
            self.log.note(Level::Warn, &text);
        }
    }

    async fn send(&self, batch: &Batch) -> Result<Outcome, Error> {
        let mut headers = RequestHeaders::default();
        headers.add(b"Content-Type", b"application/x-protobuf")?;
        for (name, value) in &self.settings.headers {
            headers.add(name.as_bytes(), value.as_bytes())?;
        }
        let mut body = request(&self.resource, &batch.entries);
        if self.settings.compression == ExportCompression::Gzip {
            headers.add(b"Content-Encoding", b"gzip")?;
            body = on_cpu_thread(move || gzip(&body)).await;
        }
        let export = Request {
            method: b"POST".to_vec(),
            headers,
            body,
            timeout_ms: self.settings.timeout_ms,
            connect_timeout_ms: self.settings.timeout_ms,
            max_body_bytes: MAX_RESPONSE_BYTES,
            max_redirects: 0,
            retries: 0,
            ..Request::get(Url::parse(self.settings.endpoint.as_bytes())?)
        };
        let mut response = self.client.send(export).await?;
        let status = response.status;
        let mut body = Vec::new();
        // Its connection is used again.
        while response.read(&mut body).await? {}
        Ok(match status {
            200..=299 => Outcome::Accepted(PartialSuccess::parse(&body)),
            status if is_retryable(status) => {
                let pause_ms = field(&response.headers, b"retry-after").and_then(retry_after_ms);
                Outcome::Later(format!("status {status}"), pause_ms)
            }
            status => Outcome::Refused(format!("status {status}")),
        })
    }
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    let done = encoder.write_all(body).and_then(|()| encoder.finish());
    done.expect("memory takes everything that is written")
}

/// The value of a field in header lines.
fn field<'a>(lines: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    lines.split(|byte| *byte == b'\n').find_map(|line| {
        let at = line.iter().position(|byte| *byte == b':')?;
        line[..at].eq_ignore_ascii_case(name).then(|| line[at + 1..].trim_ascii())
    })
}

#[cfg(test)]
mod tests;
