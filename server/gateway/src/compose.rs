//! Composed pages: scripts, upstream responses, files and texts in one response.
//!
//! Called by [`crate::dispatch`] for a path that the configuration composes. Invariants: parts
//! without `sequential` start together and are sent in their order, each as soon as its turn comes;
//! no worker is occupied while an upstream is awaited; status and headers are those of the first
//! script, and a page has no header of an upstream; a failed part is replaced or fails the page, as
//! configured, and a part for which `limits.memory` has no room fails.

mod failure;
mod file_part;
mod page;
mod part;

use crate::app::App;
use crate::refusal::Outcome;
use crate::request::Request;
use crate::response_head::ResponseHead;
use crate::route::Composed;
use crate::script::{self, SubRequest};
use crate::upstream_body::UpstreamBody;
use failure::Failure;
use file_part::FilePart;
use outboard_config::{self as config, OnError, PartSource};
use outboard_http_server::{HeaderBlock, ResponseWriter};
use outboard_http1::Method;
use outboard_log::{Level, Reason};
use outboard_reactor::now_ms;
use page::Page;
use part::{Progress, Running, ScriptPart};
use std::rc::Rc;
use std::task::Poll;

/// A page is flushed when so much of it is collected.
const FLUSH_BYTES: usize = 64 * 1024;

/// Why a page is not completed.
enum Aborted {
    ClientGone,
    /// A part failed that has no replacement.
    Failed(Failure),
}

/// Responds with a composed page.
pub(crate) async fn respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    composed: Composed,
) -> Outcome {
    if !request.is_read() {
        return Err(Reason::MethodNotAllowed.into());
    }
    let query = composed.query.or_else(|| request.query().map(<[u8]>::to_vec));
    let parts = &app.config.compose[composed.page].parts;
    let mut composition = Composition {
        request,
        app,
        parts,
        running: parts.iter().map(|_| Running::Waiting).collect(),
        leading: parts.iter().position(|part| matches!(part.source, PartSource::Script { .. })),
        path: composed.path,
        query: query.unwrap_or_default(),
    };
    let mut page = Page::new(app);
    match composition.render(response, &mut page).await {
        Ok(()) => Ok(page.finish(request, response).await),
        Err(Aborted::ClientGone) if page.is_started() => Ok(page.abort()),
        Err(Aborted::ClientGone) => Err(Reason::ClientGone.into()),
        Err(Aborted::Failed(failure)) if page.is_started() => {
            let gateway = request.gateway.clone();
            gateway.server.count_refusal(failure.reason);
            gateway.log_refusal(Some(app), request.request_id, failure.reason, &failure.text);
            Ok(page.abort())
        }
        Err(Aborted::Failed(failure)) => {
            app.log_text(Level::Error, request.request_id, &failure.text);
            Err(failure.reason.into())
        }
    }
}

/// A page that is being rendered.
struct Composition<'a> {
    request: &'a Request<'a>,
    app: &'a Rc<App>,
    parts: &'a [config::Part],
    running: Vec<Running>,
    /// The first script: it has the page's status and headers.
    leading: Option<usize>,
    path: Vec<u8>,
    query: Vec<u8>,
}

impl Composition<'_> {
    async fn render(
        &mut self,
        response: &mut ResponseWriter,
        page: &mut Page,
    ) -> Result<(), Aborted> {
        // A response to HEAD has no body, so only its head is rendered.
        if self.request.method() == Method::Head {
            if let Some(leading) = self.leading {
                self.start(leading);
            }
            return self.wait_head(response, page).await;
        }
        self.start_from(0);
        self.wait_head(response, page).await?;
        for at in 0..self.parts.len() {
            if matches!(self.running[at], Running::Waiting) {
                self.start_from(at);
            }
            self.send_part(response, page, at).await?;
        }
        Ok(())
    }

    /// Starts parts from `at` on, up to the next sequential one.
    fn start_from(&mut self, at: usize) {
        for next in at..self.parts.len() {
            let waits = self.parts[next].sequential && next > at;
            if waits {
                return;
            }
            if matches!(self.running[next], Running::Waiting) {
                self.start(next);
            }
        }
    }

    fn start(&mut self, at: usize) {
        let part = &self.parts[at];
        self.running[at] = match &part.source {
            PartSource::Text(text) => Running::Text(text.clone().into_bytes()),
            PartSource::File(path) => Running::File(FilePart::start(self.app, path)),
            PartSource::Fetch(source) => {
                let buffer_bytes = match part.on_error {
                    OnError::Replace(_) => usize::MAX,
                    OnError::Fail => self.app.config.limits.response_buffer_bytes as usize,
                };
                Running::Fetch(UpstreamBody::start(
                    self.request,
                    self.app,
                    source,
                    part.timeout_ms,
                    buffer_bytes,
                    &self.path,
                    &self.query,
                ))
            }
            PartSource::Script { path, query } => {
                let query = query.as_deref().map_or(&self.query[..], str::as_bytes);
                let sub = SubRequest { path: path.as_bytes(), query };
                let params = [(b"OUTBOARD_COMPOSE".to_vec(), b"1".to_vec())];
                match script::start_part(self.request, self.app, sub, &params) {
                    Ok(lease) => {
                        let until_ms = now_ms() + part.timeout_ms;
                        let leads = self.leading == Some(at);
                        let held = self.app.memory.responses.hold(0);
                        let part = ScriptPart::new(lease, until_ms, leads, held);
                        Running::Script(Box::new(part))
                    }
                    Err(reason) => Running::Failed(Failure::new(reason, reason.text())),
                }
            }
        };
    }

    /// Waits for the head of the first script and passes it to the page.
    async fn wait_head(
        &mut self,
        response: &mut ResponseWriter,
        page: &mut Page,
    ) -> Result<(), Aborted> {
        let Some(leading) = self.leading else {
            page.set_head(own_head());
            return Ok(());
        };
        let until_ms = self.running[leading].until_ms();
        let head = match &mut self.running[leading] {
            Running::Script(script) => {
                wait(response, until_ms, || match script.poll_head() {
                    Ok(Some(head)) => Some(Ok(head.clone())),
                    Ok(None) if now_ms() >= until_ms => Some(Err(Failure::new(
                        Reason::PartTimeout,
                        "the script took longer than the part's timeout",
                    ))),
                    Ok(None) => None,
                    Err(failure) => Some(Err(failure)),
                })
                .await?
            }
            Running::Failed(failure) => Err(failure.clone()),
            _ => Err(Failure::new(Reason::Internal, "the first script has not started")),
        };
        match head {
            Ok(head) if (200..300).contains(&head.status) && head.sendfile.is_none() => {
                page.set_head(page_head(head));
            }
            // A redirect, an error or a file replaces the page.
            Ok(head) => self.send_only(leading, head, page),
            Err(failure) => match &self.parts[leading].on_error {
                OnError::Fail => return Err(Aborted::Failed(failure)),
                OnError::Replace(_) => {
                    self.running[leading] = Running::Failed(failure);
                    page.set_head(own_head());
                }
            },
        }
        page.apply_rules(self.request);
        Ok(())
    }

    /// Makes the response of the first script the whole response.
    fn send_only(&mut self, leading: usize, head: ResponseHead, page: &mut Page) {
        for (at, running) in self.running.iter_mut().enumerate() {
            if at != leading {
                *running = Running::Over;
            }
        }
        if head.sendfile.is_some() {
            let text = "a script of a composed page cannot send a file";
            self.running[leading] = Running::Failed(Failure::new(Reason::BadSendfile, text));
        }
        page.set_head(head);
    }

    /// Sends one part completely.
    async fn send_part(
        &mut self,
        response: &mut ResponseWriter,
        page: &mut Page,
        at: usize,
    ) -> Result<(), Aborted> {
        let whole = matches!(self.parts[at].on_error, OnError::Replace(_));
        loop {
            let running = &mut self.running[at];
            let mut progress = running.take_output(whole, now_ms(), &mut page.pending);
            page.count();
            if progress == Progress::Pending {
                if !page.flush(self.request, response).await {
                    return Err(Aborted::ClientGone);
                }
                let pending = &mut page.pending;
                let until_ms = running.until_ms();
                let poll = || match running.take_output(whole, now_ms(), pending) {
                    Progress::Pending if pending.is_empty() => None,
                    progress => Some(progress),
                };
                progress = wait(response, until_ms, poll).await?;
                page.count();
            }
            match progress {
                Progress::Over => break,
                Progress::Pending => {}
                Progress::Failed(failure) => self.running[at] = self.replacement(at, failure)?,
            }
        }
        // Releases its memory.
        self.running[at] = Running::Over;
        if page.pending.len() >= FLUSH_BYTES && !page.flush(self.request, response).await {
            return Err(Aborted::ClientGone);
        }
        Ok(())
    }

    /// The configured replacement of a part that failed.
    fn replacement(&self, at: usize, failure: Failure) -> Result<Running, Aborted> {
        let OnError::Replace(text) = &self.parts[at].on_error else {
            return Err(Aborted::Failed(failure));
        };
        let name = match &self.parts[at].source {
            PartSource::Script { path, .. } | PartSource::File(path) => path,
            PartSource::Fetch(source) => source.url.as_str(),
            PartSource::Text(_) => "text",
        };
        let line = format!("part {name}: {} ({})", failure.text, failure.reason.code());
        self.app.log_text(Level::Warn, self.request.request_id, &line);
        Ok(Running::Text(text.clone().into_bytes()))
    }
}

/// Waits until `poll` has a result. It is called again when a part has progressed, and at
/// `until_ms`.
async fn wait<T>(
    response: &mut ResponseWriter,
    until_ms: u64,
    mut poll: impl FnMut() -> Option<T>,
) -> Result<T, Aborted> {
    let found = response.next_of_response(until_ms, |_| poll().map_or(Poll::Pending, Poll::Ready));
    match found.await {
        Ok(found) => Ok(found),
        Err(reason) => {
            response.note_lost(Err(reason));
            Err(Aborted::ClientGone)
        }
    }
}

/// The head of a page without a script.
fn own_head() -> ResponseHead {
    let headers = HeaderBlock::constant(&[("Content-Type", "text/html; charset=utf-8")]);
    ResponseHead { status: 200, headers, ..ResponseHead::default() }
}

/// The head of the page: that of the first script without the headers that describe its body.
fn page_head(mut head: ResponseHead) -> ResponseHead {
    for name in [&b"ETag"[..], b"Last-Modified", b"Accept-Ranges", b"Content-MD5", b"Digest"] {
        head.headers.remove(name);
    }
    head.content_length = None;
    head
}

#[cfg(test)]
mod tests;
