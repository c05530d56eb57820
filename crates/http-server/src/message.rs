//! Serves the only request of a stream, on a connection that has many.
//!
//! Spawned by the front ends of HTTP/2. Invariant: every stream is ended or reset, whatever the service
//! does.

use crate::connection::Connection;
use crate::pace::Pace;
use crate::response_writer::Written;
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
    connection.pace = Pace::of_response(&connection.context.limits());
    let written = match refusal {
        None => service.respond(&mut connection, started).await,
        Some((reason, detail)) => {
            service.refuse_head(&mut connection, started, reason, detail).await
        }
    };
    match written {
        Written::Complete { .. } => connection.transport.shutdown_write(),
        Written::Broken => connection.transport.abandon(),
        Written::Upgraded => {}
    }
    // The entry is dropped at the end of the upgraded protocol: until then the stream counts.
    let Connection { context, transport, buffers, upgrade_handler, entry: _entry, .. } = connection;
    if let Some(buffers) = buffers {
        context.buffers.give_back(buffers);
    }
    if let Some(handler) = upgrade_handler {
        handler(Upgraded::new(transport, Vec::new(), context)).await;
    }
}
