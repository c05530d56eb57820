//! What workers ask for: HTTP requests, and records of the entity store under `entities:NAMESPACE`.
//! From `Operation` frames to the client or the store, and back.
//!
//! One per app and generation; the pool calls it with what workers say. Invariants: an operation
//! is known by its worker and the worker's own number for it; completions go to the worker that
//! asked; what nobody waits for any more is dropped with its connection.

use crate::entities::{self, Answer, Entities, Owner};
use outboard_buffer::Held;
use outboard_php_pool::pool::WorkerId;
use outboard_php_pool::pool::operations::{Operations, PIECE_BYTES, Requester};
use outboard_ring::frame::Tag;
use outboard_ring::operation::{
    Call, Completion, Failure, FetchCall, FetchedHead, Operation, Part,
};
use outboard_upstream::{
    Account, Client, Error, Kind, Request, RequestHeaders, Response, ScopedTask, Url,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// Largest body of a request: it is collected before it is sent, so that it can be sent again.
const BODY_MAX_BYTES: usize = 64 << 20;
/// What a fetch takes beside its body: its task, its connection's buffers, a piece of the answer.
const OPERATION_BYTES: usize = 64 << 10;

/// The fetches of an app's workers.
#[derive(Debug)]
pub(crate) struct Fetches {
    client: Rc<Client>,
    account: Rc<Account>,
    entities: Option<Rc<Entities>>,
    owner: Rc<Owner>,
    open: RefCell<HashMap<WorkerId, HashMap<Tag, Fetch>>>,
    me: Weak<Self>,
}

/// One fetch.
#[derive(Debug)]
enum Fetch {
    /// Its body is coming.
    Collecting { wanted: Wanted, left: usize, requester: Requester, held: Held },
    /// It runs until this is dropped.
    Running { _task: ScopedTask },
}

/// What is asked for.
#[derive(Debug)]
enum Wanted {
    /// Of another server.
    Http(Box<Request>),
    /// Of the entity store; `asked` is for its `batch`.
    Entities { namespace: String, asked: Vec<u8> },
}

impl Wanted {
    fn read(call: &FetchCall<'_>) -> Result<Self, Error> {
        if let Some(namespace) = call.url.strip_prefix(b"entities:") {
            let namespace = String::from_utf8_lossy(namespace).into_owned();
            return Ok(Self::Entities { namespace, asked: Vec::new() });
        }
        Ok(Self::Http(Box::new(request(call)?)))
    }

    fn body(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Http(request) => &mut request.body,
            Self::Entities { asked, .. } => asked,
        }
    }
}

impl Fetches {
    /// Those of the app's workers that `owner` stands for.
    pub(crate) fn new(
        client: Rc<Client>,
        account: Rc<Account>,
        entities: Option<Rc<Entities>>,
        owner: Owner,
    ) -> Rc<Self> {
        let owner = Rc::new(owner);
        let open = RefCell::default();
        Rc::new_cyclic(|me| Self { client, account, entities, owner, open, me: me.clone() })
    }

    fn call(&self, requester: Requester, id: Tag, call: &FetchCall<'_>) {
        let body_bytes = call.body_bytes as usize;
        let wanted = match Wanted::read(call) {
            Ok(_) if body_bytes > BODY_MAX_BYTES => {
                let message = "the body of the request is larger than 64 MiB";
                return fail(&requester, id, Failure::BadCall, message);
            }
            Ok(wanted) => wanted,
            Err(error) => return fail(&requester, id, failure(error.kind), &error.message),
        };
        let Some(held) = requester.memory().try_hold(OPERATION_BYTES + body_bytes) else {
            return fail(&requester, id, Failure::Busy, NO_MEMORY);
        };
        if body_bytes > 0 {
            let worker = requester.worker();
            let fetch = Fetch::Collecting { wanted, left: body_bytes, requester, held };
            self.open.borrow_mut().entry(worker).or_default().insert(id, fetch);
        } else {
            self.start(requester, id, wanted, held);
        }
    }

    fn body(&self, worker: WorkerId, id: Tag, bytes: &[u8]) {
        let mut open = self.open.borrow_mut();
        let Some(fetches) = open.get_mut(&worker) else { return };
        let Some(Fetch::Collecting { wanted, left, .. }) = fetches.get_mut(&id) else { return };
        let taken = bytes.len().min(*left);
        let body = wanted.body();
        if body.is_empty() {
            // As much as is counted, where growing would take up to twice that.
            body.reserve_exact(*left);
        }
        body.extend_from_slice(&bytes[..taken]);
        *left -= taken;
        if *left > 0 {
            return;
        }
        if let Some(Fetch::Collecting { wanted, requester, held, .. }) = fetches.remove(&id) {
            drop(open);
            self.start(requester, id, wanted, held);
        }
    }

    fn start(&self, requester: Requester, id: Tag, mut wanted: Wanted, mut held: Held) {
        if let Wanted::Http(request) = &mut wanted {
            request.account = Some(self.account.clone());
        }
        let (client, entities) = (self.client.clone(), self.entities.clone());
        let owner = self.owner.clone();
        let (me, worker) = (self.me.clone(), requester.worker());
        let task = ScopedTask::spawn(async move {
            match wanted {
                Wanted::Http(request) => run(&client, &requester, id, *request).await,
                Wanted::Entities { namespace, asked } => {
                    let entities = entities.as_deref();
                    let asked =
                        RequestFacts { owner: &owner, namespace: &namespace, asked: &asked };
                    look_up(entities, &requester, id, asked, &mut held).await;
                }
            }
            drop(held);
            if let Some(fetches) = me.upgrade() {
                fetches.close(worker, id);
            }
        });
        let fetch = Fetch::Running { _task: task };
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
    fn begin(&self, requester: Requester, payload: &[u8]) {
        // What cannot be read names no operation that could be failed; the worker's own deadline
        // ends its wait.
        let Ok(Operation { id, call }) = Operation::decode(payload) else { return };
        match call {
            Call::Fetch(call) => self.call(requester, id, &call),
            Call::FetchBody(bytes) => self.body(requester.worker(), id, bytes),
            Call::Forget => self.close(requester.worker(), id),
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

/// Makes the request and tells what comes of it. PeerInfo early when the worker has gone.
async fn run(client: &Rc<Client>, requester: &Requester, id: Tag, request: Request) {
    let outcome = match client.send(request).await {
        Ok(response) => hand_on(requester, id, response).await,
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        fail(requester, id, failure(error.kind), &error.message);
    }
}

/// Has the entity store do what is asked and tells what came of it. What that takes is added to what
/// is held.
async fn look_up(
    entities: Option<&Entities>,
    requester: &Requester,
    id: Tag,
    asked: RequestFacts<'_>,
    held: &mut Held,
) {
    let Some(entities) = entities else {
        let message = "this server has no entity store; see [kv] in its configuration";
        return fail(requester, id, Failure::BadCall, message);
    };
    let RequestFacts { owner, namespace, asked } = asked;
    let Answer { status, body } =
        entities::answer_worker(entities, owner, namespace, asked, held).await;
    let head = FetchedHead { status, http_version: 1, url: b"", headers: b"" };
    // A worker that has gone waits for nothing.
    let _ = requester.send_whole(id, head, body.iter().map(|part| &**part)).await;
}

/// What is asked of a namespace, and by whom.
#[derive(Clone, Copy)]
struct RequestFacts<'a> {
    owner: &'a Owner,
    namespace: &'a str,
    asked: &'a [u8],
}

async fn hand_on(requester: &Requester, id: Tag, mut response: Response) -> Result<(), Error> {
    let mut piece = Vec::new();
    let mut more = response.read(&mut piece).await?;
    let head = FetchedHead {
        status: response.status,
        http_version: response.http_version,
        url: response.url.as_str().as_bytes(),
        headers: &response.headers,
    };
    // The answer's first piece waits as the others do: there may be many fetches.
    if requester.room().await.is_err() {
        return Ok(());
    }
    if !more && piece.len() <= PIECE_BYTES {
        // A worker that has gone waits for nothing.
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

const NO_MEMORY: &str = "what is held in memory for the worker's or the app's calls is as much as may \
                         be; see limits.memory";

fn fail(requester: &Requester, id: Tag, failure: Failure, message: &str) {
    // A worker that has gone waits for nothing.
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
