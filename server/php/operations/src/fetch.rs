//! [`FetchOperations`]: fetches of workers by HTTP, and their batches for the entity store.
//!
//! One per app and generation; the gateway passes these calls of workers to it, and no others. Invariants: an
//! operation is identified by its worker and that worker's number for it; completions are sent to
//! that worker only; an abandoned fetch is dropped with its connection.

use crate::client_span::ClientSpan;
use crate::entities::{self, BatchResult, Entities, Owner};
use outboard_buffer::Held;
use outboard_php_pool::pool::WorkerId;
use outboard_php_pool::pool::operations::{PIECE_BYTES, Requester};
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Completion, EntitiesCall, Failure, FetchCall, FetchedHead, Part};
use outboard_upstream::{
    Account, Client, Error, Kind, Request, RequestHeaders, Response, ScopedTask, Url,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Largest body of a request: it is collected before it is sent, for retries.
const BODY_MAX_BYTES: usize = 64 << 20;
/// The memory of a fetch in addition to its body: its task, the connection's buffers, a piece of
/// the response.
const OPERATION_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub struct FetchOperations {
    client: Rc<Client>,
    account: Arc<Account>,
    entities: Option<Rc<Entities>>,
    owner: Rc<Owner>,
    /// The ports that scripts may reach; `None`: all.
    ports: Option<Arc<[u16]>>,
    open: RefCell<HashMap<WorkerId, HashMap<Tag, Fetch>>>,
    me: Weak<Self>,
}

/// One fetch.
#[derive(Debug)]
enum Fetch {
    /// Its body is being received.
    Collecting { target: Target, left: usize, requester: Requester, held: Held },
    /// It runs; dropping it ends it.
    Running { _task: ScopedTask },
}

/// The target of a fetch.
#[derive(Debug)]
enum Target {
    /// Another server.
    Http(Box<Request>),
    /// The entity store; `batch` is the operation.
    Entities { namespace: String, batch: Vec<u8> },
}

impl Target {
    fn body(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Http(request) => &mut request.body,
            Self::Entities { batch, .. } => batch,
        }
    }
}

impl FetchOperations {
    /// The operations of the workers of the app `owner`.
    pub fn new(
        client: Rc<Client>,
        account: Arc<Account>,
        entities: Option<Rc<Entities>>,
        owner: Owner,
        sandbox: Option<&outboard_config::Sandbox>,
    ) -> Rc<Self> {
        let owner = Rc::new(owner);
        let strict = sandbox.filter(|sandbox| sandbox.is_strict);
        let ports = strict.map(|sandbox| sandbox.connect_ports.as_slice().into());
        let open = RefCell::default();
        Rc::new_cyclic(|me| Self { client, account, entities, owner, ports, open, me: me.clone() })
    }

    /// Begins a fetch by HTTP.
    pub fn fetch(&self, requester: Requester, id: Tag, call: &FetchCall<'_>) {
        let target = request(call).map(|request| Target::Http(Box::new(request)));
        self.call(requester, id, target, call.body_bytes as usize);
    }

    /// Begins a batch for the entity store.
    pub fn entities(&self, requester: Requester, id: Tag, call: &EntitiesCall<'_>) {
        let namespace = String::from_utf8_lossy(call.namespace).into_owned();
        let target = Target::Entities { namespace, batch: Vec::new() };
        self.call(requester, id, Ok(target), call.batch_bytes as usize);
    }

    fn call(
        &self,
        requester: Requester,
        id: Tag,
        target: Result<Target, Error>,
        body_bytes: usize,
    ) {
        let target = match target {
            Ok(_) if body_bytes > BODY_MAX_BYTES => {
                let message = "the body of the request is larger than 64 MiB";
                return fail(&requester, id, Failure::BadCall, message);
            }
            Ok(target) => target,
            Err(error) => return fail(&requester, id, failure(error.kind), &error.message),
        };
        let Some(held) = requester.memory().try_hold(OPERATION_BYTES + body_bytes) else {
            return fail(&requester, id, Failure::Busy, NO_MEMORY);
        };
        if body_bytes > 0 {
            let worker = requester.worker();
            let fetch = Fetch::Collecting { target, left: body_bytes, requester, held };
            self.open.borrow_mut().entry(worker).or_default().insert(id, fetch);
        } else {
            self.start(requester, id, target, held);
        }
    }

    /// Receives bytes of the body of a fetch, or of a batch.
    pub fn body(&self, worker: WorkerId, id: Tag, bytes: &[u8]) {
        let mut open = self.open.borrow_mut();
        let Some(fetches) = open.get_mut(&worker) else { return };
        let Some(Fetch::Collecting { target, left, .. }) = fetches.get_mut(&id) else { return };
        let taken = bytes.len().min(*left);
        let body = target.body();
        if body.is_empty() {
            // Exactly what is counted; growing could allocate twice as much.
            body.reserve_exact(*left);
        }
        body.extend_from_slice(&bytes[..taken]);
        *left -= taken;
        if *left > 0 {
            return;
        }
        if let Some(Fetch::Collecting { target, requester, held, .. }) = fetches.remove(&id) {
            drop(open);
            self.start(requester, id, target, held);
        }
    }

    fn start(&self, requester: Requester, id: Tag, mut target: Target, mut held: Held) {
        let mut span = None;
        if let Target::Http(request) = &mut target {
            request.account = Some(self.account.clone());
            request.ports = self.ports.clone();
            let begin = |outer| ClientSpan::of_application(outer, request);
            span = requester.trace().map(begin);
        }
        let (client, entities) = (self.client.clone(), self.entities.clone());
        let owner = self.owner.clone();
        let (me, worker) = (self.me.clone(), requester.worker());
        let task = ScopedTask::spawn_in_background(async move {
            match target {
                Target::Http(request) => run(&client, &requester, id, *request, span).await,
                Target::Entities { namespace, batch } => {
                    let entities = entities.as_deref();
                    let call = StoreCall { owner: &owner, namespace: &namespace, batch: &batch };
                    run_batch(entities, &requester, id, call, &mut held).await;
                }
            }
            drop(held);
            if let Some(fetches) = me.upgrade() {
                fetches.close(worker, id);
            }
        });
        let fetch = Fetch::Running { _task: task };
        // A fetch with the same id is replaced, which ends it.
        let replaced = self.open.borrow_mut().entry(worker).or_default().insert(id, fetch);
        drop(replaced);
    }

    /// Ends one, complete or not.
    pub fn close(&self, worker: WorkerId, id: Tag) {
        let mut open = self.open.borrow_mut();
        let closed = open.get_mut(&worker).and_then(|fetches| fetches.remove(&id));
        drop(open);
        drop(closed);
    }

    /// Whether a worker has some that are not finished.
    pub fn has_any(&self, worker: WorkerId) -> bool {
        self.open.borrow().get(&worker).is_some_and(|fetches| !fetches.is_empty())
    }

    /// Ends those of a worker that has exited.
    pub fn forget(&self, worker: WorkerId) {
        let dropped = self.open.borrow_mut().remove(&worker);
        drop(dropped);
    }
}

fn request(call: &FetchCall<'_>) -> Result<Request, Error> {
    Ok(Request {
        method: call.method.to_vec(),
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
        ..Request::get(Url::parse(call.url)?)
    })
}

/// Sends the request and relays its response.
async fn run(
    client: &Rc<Client>,
    requester: &Requester,
    id: Tag,
    request: Request,
    span: Option<ClientSpan>,
) {
    let outcome = match client.send(request).await {
        Ok(response) => {
            span.iter().for_each(|span| span.responded(response.status));
            relay(requester, id, response).await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        span.iter().for_each(|span| span.failed(&error));
        fail(requester, id, failure(error.kind), &error.message);
    }
}

/// Executes a batch in the entity store and sends the result. Its memory is added to `held`.
async fn run_batch(
    entities: Option<&Entities>,
    requester: &Requester,
    id: Tag,
    call: StoreCall<'_>,
    held: &mut Held,
) {
    let Some(entities) = entities else {
        let message = "this server has no entity store; see [kv] in its configuration";
        return fail(requester, id, Failure::BadCall, message);
    };
    let StoreCall { owner, namespace, batch } = call;
    let BatchResult { status, body } =
        entities::execute_batch(entities, owner, namespace, batch, held).await;
    let head = FetchedHead { status, http_version: 1, url: b"", headers: b"" };
    // A worker that has ended does not wait for it.
    let _ = requester.send_whole(id, head, body.iter().map(|part| &**part)).await;
}

/// An operation on a namespace.
#[derive(Clone, Copy)]
struct StoreCall<'a> {
    owner: &'a Owner,
    namespace: &'a str,
    batch: &'a [u8],
}

async fn relay(requester: &Requester, id: Tag, mut response: Response) -> Result<(), Error> {
    let mut piece = Vec::new();
    let mut more = response.read(&mut piece).await?;
    let head = FetchedHead {
        status: response.status,
        http_version: response.http_version,
        url: response.url.as_str().as_bytes(),
        headers: &response.headers,
    };
    // The first piece waits for room as well: there may be many fetches.
    if requester.room().await.is_err() {
        return Ok(());
    }
    if !more && piece.len() <= PIECE_BYTES {
        // A worker that has ended does not wait for it.
        let _ = requester.send(&Completion { id, part: Part::Whole(head, &piece) });
        return Ok(());
    }
    if requester.send(&Completion { id, part: Part::Head(head) }).is_err() {
        return Ok(());
    }
    loop {
        let body = Completion { id, part: Part::Body(&piece) };
        if !piece.is_empty() && requester.send(&body).is_err() {
            return Ok(());
        }
        if !more {
            break;
        }
        if requester.room().await.is_err() {
            return Ok(());
        }
        piece.clear();
        more = response.read(&mut piece).await?;
    }
    // As above.
    let _ = requester.send(&Completion { id, part: Part::End });
    Ok(())
}

const NO_MEMORY: &str =
    "the memory for the calls of the worker or the app is used up; see limits.memory";

fn fail(requester: &Requester, id: Tag, failure: Failure, message: &str) {
    // A worker that has ended does not wait for it.
    let _ = requester.send(&Completion { id, part: Part::Failed { failure, message } });
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

#[cfg(test)]
mod tests;
