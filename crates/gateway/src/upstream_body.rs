//! [`UpstreamBody`]: an upstream's answer on its way to a page or to a script.
//!
//! Made by the connection's task, filled by a task of its own, which wakes the former. Invariant:
//! a status other than 200 to 299 is no part of a page; whoever wants such answers asks for the
//! status instead.

use crate::app::App;
use outboard_buffer::Held;
use outboard_config::FetchSource;
use outboard_reactor::{Event, TaskId, current_task, wake};
use outboard_upstream::{Client, Error, Kind, Request, RequestHeaders, ScopedTask, Url};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A fetch that is under way or over. Dropping it ends it.
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
    /// Counts it.
    held: RefCell<Held>,
    outcome: RefCell<Option<Result<(), Error>>>,
    /// Beyond so much untaken body the upstream has to wait.
    buffer_bytes: usize,
    room: Event,
}

impl UpstreamBody {
    /// Begins to fetch for the current task.
    pub(crate) fn start(
        app: &App,
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
        let request = request(source, timeout_ms, path, query).map(|mut request| {
            request.account = Some(app.upstream_account.clone());
            request
        });
        let (client, theirs) = (app.upstream.clone(), shared.clone());
        let task = ScopedTask::spawn(async move {
            let outcome = match request {
                Ok(request) => theirs.fetch(&client, request).await,
                Err(error) => Err(error),
            };
            theirs.outcome.replace(Some(outcome));
            wake(theirs.task);
        });
        Self { shared, _task: task }
    }

    /// The status; 0 before it has come.
    pub(crate) fn status(&self) -> u16 {
        self.shared.status.get()
    }

    /// Moves the body so far to the end of `out`.
    pub(crate) fn take(&self, out: &mut Vec<u8>) {
        out.append(&mut self.shared.body.borrow_mut());
        self.shared.held.borrow_mut().set(0);
        self.shared.room.set();
    }

    /// How it ended, once it has.
    pub(crate) fn outcome(&self) -> Option<Result<(), Error>> {
        self.shared.outcome.borrow().clone()
    }
}

impl Shared {
    async fn fetch(&self, client: &Rc<Client>, request: Request) -> Result<(), Error> {
        let mut response = client.send(request).await?;
        self.status.set(response.status);
        let mut piece = Vec::new();
        loop {
            let more = response.read(&mut piece).await?;
            if !self.held.borrow_mut().try_grow(piece.len()) {
                let message = "limits.memory has no room for the answer".to_owned();
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

fn request(
    source: &FetchSource,
    timeout_ms: u64,
    path: &[u8],
    query: &[u8],
) -> Result<Request, Error> {
    let mut request = Request::get(Url::parse(source.url.expand(path, query).as_bytes())?);
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
