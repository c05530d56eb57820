//! Samples of hits for the audit, which sends their requests again and compares the responses.
//!
//! Called by [`super::respond`] and by the admin socket.

use crate::app::App;
use crate::gateway::Gateway;
use crate::origin::{Origin, Prepared};
use crate::request::Request;
use outboard_admin_api::cache::{Audit, Audited};

use outboard_page_cache::{
    Entry, Field, Fields, OwnFields, PageCache, Replay, Replayed, Response, may_be_stored,
};
use std::pin::Pin;
use std::rc::{Rc, Weak};

/// A request that was a cache hit.
#[derive(Debug)]
struct HitReplay {
    /// Weak, since the app owns the cache and thereby its samples.
    app: Weak<App>,
    prepared: Prepared,
    request_id: u64,
    full_path: Vec<u8>,
    /// Below the app's prefix.
    path: Vec<u8>,
    body_max_bytes: usize,
}

impl Replay for HitReplay {
    fn path(&self) -> &[u8] {
        &self.path
    }

    fn fields(&self) -> OwnFields {
        self.prepared.fields()
    }

    fn send(&self, fields: &OwnFields) -> Pin<Box<dyn Future<Output = Option<Replayed>>>> {
        let (app, prepared) = (self.app.clone(), self.prepared.with_fields(fields));
        let (path, request_id, max_bytes) =
            (self.full_path.clone(), self.request_id, self.body_max_bytes);
        Box::pin(async move {
            let app = app.upgrade()?;
            let rendered = prepared.render(&app, request_id, &path, max_bytes).await;
            let (head, body) = rendered.ok().flatten()?;
            let fields: Vec<Field<'_>> = head.headers.lines().collect();
            let response = Response { status: head.status, fields: Fields(&fields) };
            let personal_because = match head.used_session {
                true => Some("a session"),
                false => (!may_be_stored(response)).then_some("a response header"),
            };
            Some(Replayed { status: head.status, personal_because, body })
        })
    }
}

/// Stores a hit for the audit, or examines it, if it is selected.
pub(super) fn sample_hit(
    cache: &Rc<PageCache>,
    request: &Request<'_>,
    app: &Rc<App>,
    origin: &Origin,
    entry: &Entry,
) {
    cache.sample_hit(entry, || {
        let prepared = origin.prepare(request, app, &super::store::requirements(cache, None))?;
        let full_path = request.path().to_vec();
        Some(Rc::new(HitReplay {
            app: Rc::downgrade(app),
            prepared,
            request_id: request.request_id,
            path: app.below_prefix(&full_path).to_vec(),
            full_path,
            body_max_bytes: cache.settings().policy.body_max_bytes,
        }))
    });
}

/// Examines stored hits of all threads.
pub(super) async fn examine(gateway: &Gateway, audit: &Audit) -> Audited {
    let asked = audit.clone();
    let others = async move |gateway: Rc<Gateway>| examine_own(&gateway, &asked).await;
    let others = gateway.shards.on_followers(others).await;
    let mut audited = examine_own(gateway, audit).await;
    for other in others {
        audited.examined += other.examined;
        for finding in other.unsafe_pages {
            if audited.unsafe_pages.iter().all(|known| known.url != finding.url) {
                audited.unsafe_pages.push(finding);
            }
        }
    }
    audited
}

/// Examines stored hits of this thread.
async fn examine_own(gateway: &Gateway, audit: &Audit) -> Audited {
    let generation = gateway.generation();
    let mut audited = Audited { examined: 0, unsafe_pages: Vec::new() };
    for app in &generation.apps {
        let is_selected = audit.app.as_ref().is_none_or(|name| *name == app.config.name);
        let Some(cache) = app.page_cache.as_ref().filter(|_| is_selected) else { continue };
        let (examined, findings) = cache.audit().examine_samples(audit.sample).await;
        audited.examined += examined;
        audited.unsafe_pages.extend(findings);
    }
    audited
}
