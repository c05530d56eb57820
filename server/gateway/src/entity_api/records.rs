//! [`Records`]: the records of a namespace, wherever they are.
//!
//! Used by the handlers of the entity store. Only the lead has the store; on other threads each call is
//! work for the lead, and its result is sent back. Invariant: a call has the same result on every
//! thread.

use crate::gateway::Gateway;
use crate::shards::ShardHandle;
use outboard_config::EntityEngine;
use outboard_entity_store::{Namespace, Piece, Record, Scan, StoreError, Write, Written};
use outboard_operations::Entities;
use std::ops::Bound;
use std::rc::Rc;

/// See the module.
pub(super) enum Records {
    Here(Rc<Namespace>),
    OnLead(OnLead),
}

/// A namespace of the lead.
#[derive(Clone)]
pub(super) struct OnLead {
    lead: ShardHandle<Gateway>,
    namespace: String,
    copies: u32,
}

impl Records {
    /// Those of a namespace, if it exists.
    pub(super) fn of(gateway: &Gateway, entities: &Entities, namespace: &str) -> Option<Self> {
        if let Some(namespace) = entities.namespace(namespace) {
            return Some(Self::Here(namespace.clone()));
        }
        let storage = &entities.config.storage;
        let is_configured = storage.namespaces.iter().any(|one| one.name == namespace);
        let lead = gateway.shards.lead().filter(|_| is_configured)?;
        let copies = match &storage.engine {
            EntityEngine::Redis(redis) => redis.replicas,
            EntityEngine::Disk(_) => 1,
        };
        Some(Self::OnLead(OnLead { lead, namespace: namespace.to_owned(), copies }))
    }

    /// The number of nodes that have a copy of each record.
    pub(super) fn copies(&self) -> u32 {
        match self {
            Self::Here(namespace) => namespace.copies(),
            Self::OnLead(there) => there.copies,
        }
    }

    /// Reads a record.
    pub(super) async fn get(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        match self {
            Self::Here(namespace) => namespace.get(id).await,
            Self::OnLead(there) => {
                let id = id.to_vec();
                there.call(async move |namespace| namespace.get(&id).await).await
            }
        }
    }

    /// Writes a record, to so many copies.
    pub(super) async fn write(&self, write: Write, copies: u32) -> Result<Written, StoreError> {
        match self {
            Self::Here(namespace) => namespace.write_copies(write, copies).await,
            Self::OnLead(there) => {
                there.call(async move |namespace| namespace.write_copies(write, copies).await).await
            }
        }
    }

    /// Reads records in order, in pieces.
    pub(super) fn scan(self, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> RecordScan {
        match self {
            Self::Here(namespace) => RecordScan::Here(namespace.scan(start, end)),
            Self::OnLead(there) => RecordScan::OnLead { there, start, end },
        }
    }
}

impl OnLead {
    /// Calls the namespace on the lead's thread.
    async fn call<T, F>(
        &self,
        call: impl FnOnce(Rc<Namespace>) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + 'static,
    {
        let name = self.namespace.clone();
        let called = self.lead.run(async move |gateway: Rc<Gateway>| {
            let entities = gateway.generation().entities.clone();
            let namespace = entities.and_then(|entities| entities.namespace(&name).cloned());
            match namespace {
                Some(namespace) => call(namespace).await,
                None => Err(StoreError::Unreachable("the store was closed".to_owned())),
            }
        });
        let stopped = || StoreError::Unreachable("the server is stopping".to_owned());
        called.await.unwrap_or_else(|| Err(stopped()))
    }
}

/// A scan. On other threads than the lead's, each piece is a scan that begins after the last one.
pub(super) enum RecordScan {
    Here(Scan),
    OnLead { there: OnLead, start: Bound<Vec<u8>>, end: Bound<Vec<u8>> },
}

impl RecordScan {
    /// The next records; empty at the end.
    pub(super) async fn next(&mut self) -> Result<Piece, StoreError> {
        match self {
            Self::Here(scan) => scan.next().await,
            Self::OnLead { there, start, end } => {
                let bounds = (start.clone(), end.clone());
                let next = async move |namespace: Rc<Namespace>| {
                    namespace.scan(bounds.0, bounds.1).next().await
                };
                let piece = there.call(next).await?;
                if let Some((last, _)) = piece.last() {
                    *start = Bound::Excluded(last.to_vec());
                }
                Ok(piece)
            }
        }
    }
}
