//! [`UpstreamBody`]: a fetched body for a page or for a script.
//!
//! Created by the connection's task, filled by a task of its own, which wakes the former.
//! Invariant: its memory is counted, and the upstream waits while more than `buffer_bytes` are not
//! taken.

use crate::app::App;
use crate::request::Request;
use crate::upstream_call::UpstreamCall;
use outboard_buffer::Held;
use outboard_config::FetchSource;
use outboard_reactor::{Event, TaskId, current_task, wake};
use outboard_upstream::{self as upstream, Client, Error, Kind, RequestHeaders, ScopedTask, Url};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// See the module. Dropping it ends the fetch.
#[derive(Debug)]
pub(crate) struct UpstreamBody {
    shared: Rc<Shared>,
    _task: ScopedTask,
}

#[derive(Debug)]
struct Shared {
    task: TaskId,
    status: Cell<u16>,
    body: RefCell<Vec<u8>>,
    /// Counts `body`.
    held: RefCell<Held>,
    outcome: RefCell<Option<Result<(), Error>>>,
    /// The upstream waits while so many bytes are not taken.
    buffer_bytes: usize,
    room: Event,
}

impl UpstreamBody {
    /// Starts a fetch for the current task.
    pub(crate) fn start(
        request: &Request<'_>,
        app: &Rc<App>,
        source: &FetchSource,
        timeout_ms: u64,
        buffer_bytes: usize,
        path: &[u8],
        query: &[u8],
    ) -> Self {
        let shared = Rc::new(Shared {
            task: current_task(),
            status: Cell::new(0),
            body: RefCell::default(),
            held: RefCell::new(app.memory.responses.hold(0)),
            outcome: RefCell::default(),
            buffer_bytes,
            room: Event::default(),
        });
        let outgoing = outgoing(source, timeout_ms, path, query).map(|mut outgoing| {
            outgoing.account = Some(app.upstream_account.clone());
            let call = UpstreamCall::begin(request, app, &mut outgoing);
            (outgoing, call)
        });
        let (client, filler) = (app.upstream.clone(), shared.clone());
        let task = ScopedTask::spawn(async move {
            let outcome = match outgoing {
                Ok((outgoing, call)) => {
                    let outcome = filler.fetch(&client, outgoing, &call).await;
                    outcome.inspect_err(|error| call.failed(error))
                }
                Err(error) => Err(error),
            };
            filler.outcome.replace(Some(outcome));
            wake(filler.task);
        });
        Self { shared, _task: task }
    }

    /// The status; 0 before the head has arrived.
    pub(crate) fn status(&self) -> u16 {
        self.shared.status.get()
    }

    /// Moves the body so far to the end of `out`.
    pub(crate) fn take(&self, out: &mut Vec<u8>) {
        out.append(&mut self.shared.body.borrow_mut());
        self.shared.held.borrow_mut().set(0);
        self.shared.room.set();
    }

    /// The outcome, once the fetch has ended.
    pub(crate) fn outcome(&self) -> Option<Result<(), Error>> {
        self.shared.outcome.borrow().clone()
    }
}

impl Shared {
    async fn fetch(
        &self,
        client: &Rc<Client>,
        outgoing: upstream::Request,
        call: &UpstreamCall,
    ) -> Result<(), Error> {
        let mut response = client.send(outgoing).await?;
        call.responded(response.status);
        self.status.set(response.status);
        let mut piece = Vec::new();
        loop {
            let more = response.read(&mut piece).await?;
            if !self.held.borrow_mut().try_grow(piece.len()) {
                let message = "limits.memory has no room for the response".to_owned();
                return Err(Error::new(Kind::Busy, message));
            }
            self.body.borrow_mut().append(&mut piece);
            if !more {
                return Ok(());
            }
            wake(self.task);
            while self.body.borrow().len() >= self.buffer_bytes {
                self.room.wait().await;
            }
        }
    }
}

fn outgoing(
    source: &FetchSource,
    timeout_ms: u64,
    path: &[u8],
    query: &[u8],
) -> Result<upstream::Request, Error> {
    let mut request =
        upstream::Request::get(Url::parse(source.url.expand(path, query).as_bytes())?);
    let mut headers = RequestHeaders::default();
    for (name, value) in &source.headers {
        headers.add(name.as_bytes(), value.as_bytes())?;
    }
    request.headers = headers;
    request.timeout_ms = timeout_ms;
    request.connect_timeout_ms = timeout_ms;
    request.max_body_bytes = source.max_body_bytes;
    Ok(request)
}
