//! HTTP requests that workers ask for: from `Operation` frames to the client, and back.
//!
//! One per app and generation; the pool calls it with what workers say. Invariants: an operation
//! is known by its worker and the worker's own number for it; completions go to the worker that
//! asked; what nobody waits for any more is dropped with its connection.

use crate::pool::operations::{Asker, Operations, PIECE_BYTES, WorkerId};
use outboard_ring::frame::Tag;
use outboard_ring::operation::{
    Call, Completion, Failure, FetchCall, FetchedHead, Operation, Part,
};
use outboard_upstream::{Client, Error, Job, Kind, Request, RequestHeaders, Response, Url};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// Largest body of a request: it is collected before it is sent, so that it can be sent again.
const BODY_MAX_BYTES: usize = 64 << 20;

/// The fetches of an app's workers.
#[derive(Debug)]
pub(crate) struct Fetches {
    client: Rc<Client>,
    open: RefCell<HashMap<WorkerId, HashMap<Tag, Fetch>>>,
    me: Weak<Self>,
}

/// One fetch.
#[derive(Debug)]
enum Fetch {
    /// Its body is coming.
    Collecting { request: Box<Request>, left: usize, asker: Asker },
    /// It runs until this is dropped.
    Running { _job: Job },
}

impl Fetches {
    pub(crate) fn new(client: Rc<Client>) -> Rc<Self> {
        Rc::new_cyclic(|me| Self { client, open: RefCell::default(), me: me.clone() })
    }

    fn call(&self, asker: Asker, id: Tag, call: &FetchCall<'_>) {
        let body_bytes = call.body_bytes as usize;
        let request = match request(call) {
            Ok(_) if body_bytes > BODY_MAX_BYTES => {
                let message = "the body of the request is larger than 64 MiB";
                return fail(&asker, id, Failure::BadCall, message);
            }
            Ok(request) => Box::new(request),
            Err(error) => return fail(&asker, id, failure(error.kind), &error.message),
        };
        if body_bytes > 0 {
            let worker = asker.worker();
            let fetch = Fetch::Collecting { request, left: body_bytes, asker };
            self.open.borrow_mut().entry(worker).or_default().insert(id, fetch);
        } else {
            self.start(asker, id, request);
        }
    }

    fn body(&self, worker: WorkerId, id: Tag, bytes: &[u8]) {
        let mut open = self.open.borrow_mut();
        let Some(fetches) = open.get_mut(&worker) else { return };
        let Some(Fetch::Collecting { request, left, .. }) = fetches.get_mut(&id) else { return };
        let taken = bytes.len().min(*left);
        request.body.extend_from_slice(&bytes[..taken]);
        *left -= taken;
        if *left > 0 {
            return;
        }
        if let Some(Fetch::Collecting { request, asker, .. }) = fetches.remove(&id) {
            drop(open);
            self.start(asker, id, request);
        }
    }

    fn start(&self, asker: Asker, id: Tag, request: Box<Request>) {
        let (client, me, worker) = (self.client.clone(), self.me.clone(), asker.worker());
        let job = Job::spawn(async move {
            run(&client, &asker, id, *request).await;
            if let Some(fetches) = me.upgrade() {
                fetches.close(worker, id);
            }
        });
        let fetch = Fetch::Running { _job: job };
        // One with the same id is replaced, and thereby ended.
        let replaced = self.open.borrow_mut().entry(worker).or_default().insert(id, fetch);
        drop(replaced);
    }

    fn close(&self, worker: WorkerId, id: Tag) {
        let mut open = self.open.borrow_mut();
        let closed = open.get_mut(&worker).and_then(|fetches| fetches.remove(&id));
        drop(open);
        drop(closed);
    }
}

impl Operations for Fetches {
    fn begin(&self, asker: Asker, payload: &[u8]) {
        // What cannot be read names no operation that could be failed; the worker's own deadline
        // ends its wait.
        let Ok(Operation { id, call }) = Operation::decode(payload) else { return };
        match call {
            Call::Fetch(call) => self.call(asker, id, &call),
            Call::FetchBody(bytes) => self.body(asker.worker(), id, bytes),
            Call::Forget => self.close(asker.worker(), id),
            // Heard by `Purges` and `Tasks` before.
            Call::Purge(_) | Call::Task(_) => {}
        }
    }

    fn forget(&self, worker: WorkerId) {
        let forgotten = self.open.borrow_mut().remove(&worker);
        drop(forgotten);
    }
}

fn request(call: &FetchCall<'_>) -> Result<Request, Error> {
    Ok(Request {
        method: call.method.to_vec(),
        url: Url::parse(call.url)?,
        headers: RequestHeaders::parse(call.headers)?,
        body: Vec::new(),
        connect_timeout_ms: call.connect_timeout_ms.into(),
        timeout_ms: call.timeout_ms.into(),
        max_body_bytes: call.max_body_bytes.into(),
        max_redirects: call.max_redirects,
        retries: call.retries,
        verify: call.options.verify,
        decompress: call.options.decompress,
        http2: call.options.http2,
    })
}

/// Makes the request and tells what comes of it. Ends early when the worker has gone.
async fn run(client: &Rc<Client>, asker: &Asker, id: Tag, request: Request) {
    let outcome = match client.send(request).await {
        Ok(response) => hand_on(asker, id, response).await,
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        fail(asker, id, failure(error.kind), &error.message);
    }
}

async fn hand_on(asker: &Asker, id: Tag, mut response: Response) -> Result<(), Error> {
    let mut piece = Vec::new();
    let mut more = response.read(&mut piece).await?;
    let head = FetchedHead {
        status: response.status,
        http_version: response.http_version,
        url: response.url.as_str().as_bytes(),
        headers: &response.headers,
    };
    if !more && piece.len() <= PIECE_BYTES {
        // A worker that has gone waits for nothing.
        let _ = asker.send(&Completion { id, part: Part::Whole(head, &piece) });
        return Ok(());
    }
    if asker.send(&Completion { id, part: Part::Head(head) }).is_err() {
        return Ok(());
    }
    loop {
        let body = Completion { id, part: Part::Body(&piece) };
        if !piece.is_empty() && asker.send(&body).is_err() {
            return Ok(());
        }
        if !more {
            break;
        }
        if asker.room().await.is_err() {
            return Ok(());
        }
        piece.clear();
        more = response.read(&mut piece).await?;
    }
    // As above.
    let _ = asker.send(&Completion { id, part: Part::End });
    Ok(())
}

fn fail(asker: &Asker, id: Tag, failure: Failure, message: &str) {
    // A worker that has gone waits for nothing.
    let _ = asker.send(&Completion { id, part: Part::Failed { failure, message } });
}

fn failure(kind: Kind) -> Failure {
    match kind {
        Kind::BadCall => Failure::BadCall,
        Kind::Resolve => Failure::Resolve,
        Kind::Connect => Failure::Connect,
        Kind::Tls => Failure::Tls,
        Kind::Timeout => Failure::Timeout,
        Kind::Protocol => Failure::Protocol,
        Kind::Redirects => Failure::Redirects,
        Kind::TooLarge => Failure::TooLarge,
        Kind::Busy => Failure::Busy,
    }
}
