//! Serves the only request of a stream, on a connection that has many.
//!
//! Spawned by the front ends of HTTP/2. Invariant: every stream is ended or reset, whatever the service
//! does.

use crate::connection::Connection;
use crate::response_facts::Written;
use crate::service::Service;
use crate::upgrade::Upgraded;
use outboard_log::{Reason, Wall};
use std::rc::Rc;

/// Responds to a request whose head was composed; with a reason it is refused.
pub(crate) async fn serve<S: Service>(
    service: Rc<S>,
    mut connection: Connection,
    refusal: Option<(Reason, &'static str)>,
) {
    let started = Wall::now();
    let written = match refusal {
        None => {
            connection.begin_response();
            let Connection { request, response, .. } = &mut connection;
            service.respond(request, response, started).await
        }
        Some(refusal) => {
            connection.begin_refusal();
            let Connection { request, response, .. } = &mut connection;
            service.refuse_head(request, response, started, refusal).await
        }
    };
    match written {
        Written::Complete { .. } => connection.client.transport.shutdown_write(),
        Written::Broken => connection.client.transport.abandon(),
        Written::Upgraded => {}
    }
    let (client, _, upgrade_handler) = connection.into_rest();
    // Until the end of the upgraded protocol the stream counts.
    if let Some(handler) = upgrade_handler {
        handler(Upgraded::new(client, Vec::new())).await;
    }
}
