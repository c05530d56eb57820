//! [`PassedOn`]: a datagram on its way from the thread, or the process, that has received it to its own.

use bytes::BytesMut;
use quinn_proto::EcnCodepoint;
use std::net::{IpAddr, SocketAddr};

/// See the module.
pub(crate) struct PassedOn {
    pub(crate) from: SocketAddr,
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) datagram: BytesMut,
}
