//! Which of the sockets of a port the kernel gives new connections to.
//!
//! Called by the gateway when connections are to be on fewer threads, or on more. The program is one for all sockets of
//! the port (`SO_ATTACH_REUSEPORT_CBPF` in socket(7)). Invariant: nothing depends on it, since each thread
//! accepts whatever arrives on its socket.

use super::BoundListener;
use crate::listener_context::Role;
use nix::libc::{
    BPF_A, BPF_ABS, BPF_ALU, BPF_K, BPF_LD, BPF_MOD, BPF_RET, BPF_W, SKF_AD_OFF, SKF_AD_RANDOM,
    sock_filter, sock_fprog,
};
use nix::sys::socket::{setsockopt, sockopt};
use std::io;

impl BoundListener {
    /// Has the kernel distribute new connections among the sockets that were bound first: `serving` of them, or, with TLS,
    /// `all`, since such connections cannot move later. The port may have been without TLS before.
    ///
    /// # Errors
    /// The port has one socket only, or the kernel does not know the option.
    pub fn steer(&self, serving: u32, all: u32) -> io::Result<()> {
        debug_assert!(0 < serving && serving <= all, "{serving} of {all} would accept");
        let context = self.context();
        let is_steered = context.role == Role::Apps && !self.is_duplicate;
        let Some(listener) = self.listener.upgrade().filter(|_| is_steered) else {
            return Ok(());
        };
        let mut program = random_below(if context.tls.is_some() { all } else { serving });
        let filter = program.as_mut_ptr();
        let program = sock_fprog { len: program.len() as u16, filter };
        setsockopt(&*listener, sockopt::AttachReusePortCbpf, &program).map_err(io::Error::from)
    }
}

/// Returns a random number below `count`: the index of a socket (Documentation/networking/filter.rst of Linux).
fn random_below(count: u32) -> [sock_filter; 3] {
    let step = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    [
        step(BPF_LD | BPF_W | BPF_ABS, (SKF_AD_OFF + SKF_AD_RANDOM) as u32),
        step(BPF_ALU | BPF_MOD | BPF_K, count),
        step(BPF_RET | BPF_A, 0),
    ]
}
