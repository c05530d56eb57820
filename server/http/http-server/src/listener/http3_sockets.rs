//! HTTP/3 beside a listener of TCP: the sockets of its UDP port.
//!
//! Called by the gateway at start and at a reload, first to bind and then to serve.

use super::{BindError, BoundListener};
use crate::http3::{Http3Endpoint, Http3Socket};
use crate::listener_context::ListenerContext;
use crate::service::Service;
use rustix::fd::OwnedFd;
use std::io;
use std::rc::Rc;

impl BoundListener {
    /// Whether a socket is missing for what the settings say.
    pub fn lacks_http3(&self, context: &ListenerContext) -> bool {
        context.http3 && self.http3.borrow().is_none()
    }

    /// Takes inherited sockets or binds some for HTTP/3: one for each thread.
    ///
    /// # Errors
    /// The port of UDP cannot be bound.
    pub fn http3_sockets(
        &self,
        threads: usize,
        inherited: &[OwnedFd],
    ) -> Result<Vec<Http3Socket>, BindError> {
        let local = self.local.ok_or_else(|| io::Error::other("HTTP/3 needs a port"));
        local
            .and_then(|local| Http3Socket::for_threads(threads, inherited, local))
            .map_err(|source| BindError::new(self.address.clone(), source))
    }

    /// Serves HTTP/3 too.
    ///
    /// # Errors
    /// The settings of TLS cannot be used, or the event loop cannot watch the socket.
    pub fn serve_http3<S: Service>(
        self: &Rc<Self>,
        service: &Rc<S>,
        socket: Http3Socket,
    ) -> Result<(), BindError> {
        let started = Http3Endpoint::start(service, &self.context, socket)
            .map_err(|source| BindError::new(self.address.clone(), source))?;
        self.http3.replace(Some(started));
        Ok(())
    }
}
