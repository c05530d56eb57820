//! Writes a response as fast as its source sends it; what a slow client does not read is spooled.
//!
//! Called by the service for scripts and other servers.

use crate::response_writer::ResponseWriter;
use crate::server_context::ServerContext;
use crate::spool::{Spool, Taken};
use outboard_buffer::Account;
use outboard_log::Reason;
use outboard_reactor::{is_spent, now_ms, with_deadline, yield_now};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::Poll;

/// The part of a response that is spooled in memory.
const MEMORY_BYTES: usize = 64 << 10;
/// The same while memory is scarce.
const SCARCE_MEMORY_BYTES: usize = 4 << 10;

impl ResponseWriter {
    /// Writes the output buffer and then these slices. What the client does not read is spooled, to be sent
    /// by [`ResponseWriter::next_of_response`] or [`ResponseWriter::drain_spool`]; the account counts its memory.
    /// False if the client is gone.
    pub async fn write_or_spool(&mut self, slices: [&[u8]; 3], account: &Rc<Account>) -> bool {
        self.send_pending_head();
        let out = std::mem::take(&mut self.output);
        let [first, second, third] = slices.map(IoSlice::new);
        let slices = &mut [IoSlice::new(&out), first, second, third];
        let put = self.put_slices(slices, account).await;
        if self.spool.is_none() {
            // A slow client needs no buffer.
            self.output = out;
            self.output.clear();
        }
        self.note_lost(put)
    }

    async fn put_slices(
        &mut self,
        mut slices: &mut [IoSlice<'_>],
        account: &Rc<Account>,
    ) -> Result<(), Reason> {
        IoSlice::advance_slices(&mut slices, 0);
        while self.spool.is_none() && !slices.is_empty() {
            match self.client.transport.try_write(slices) {
                Ok(Some(count)) => {
                    self.pace.count(count);
                    IoSlice::advance_slices(&mut slices, count);
                }
                // Only the budget of this turn is spent; the client is not slow.
                Ok(None) if is_spent() => yield_now().await,
                Ok(None) => self.spool = Some(Spool::new(account)),
                Err(_) => return Err(Reason::ClientGone),
            }
        }
        let memory_bytes = memory_bytes(&self.client.context);
        let Some(spool) = &mut self.spool else { return Ok(()) };
        if spool.push(slices, memory_bytes, &self.client.context.shared.temp_dir).is_ok() {
            return Ok(());
        }
        self.send_all().await?;
        self.client.transport.write_all(slices, &mut self.pace).await
    }

    /// Waits for the next part of the response, and meanwhile sends the spool. `poll_next` receives the
    /// length of the spool and is polled again at `until_ms`.
    ///
    /// # Errors
    /// Why the client is gone.
    pub async fn next_of_response<T>(
        &mut self,
        until_ms: u64,
        mut poll_next: impl FnMut(u64) -> Poll<T>,
    ) -> Result<T, Reason> {
        let timeout_ms = self.client.context.limits().write_timeout_ms;
        loop {
            let spool = self.spool.as_ref();
            let client_until_ms = spool.map_or(u64::MAX, |spool| spool.read_ms + timeout_ms);
            let news = poll_fn(|_| self.poll_while_sending(&mut poll_next));
            match with_deadline(until_ms.min(client_until_ms), news).await {
                Ok(Ok(Some(next))) => return Ok(next),
                Ok(Err(reason)) => return Err(reason),
                Err(_) if now_ms() >= client_until_ms => return Err(Reason::WriteTimeout),
                // A fast client with a long file must not delay other tasks.
                Ok(Ok(None)) | Err(_) => yield_now().await,
            }
        }
    }

    /// `None` if the client has read something.
    fn poll_while_sending<T>(
        &mut self,
        poll_next: &mut impl FnMut(u64) -> Poll<T>,
    ) -> Poll<Result<Option<T>, Reason>> {
        let taken = self.send_spool()?;
        if let Poll::Ready(next) = poll_next(self.spool.as_ref().map_or(0, Spool::left)) {
            return Poll::Ready(Ok(Some(next)));
        }
        match taken {
            Taken::All => self.client.poll_gone().map(|()| Err(Reason::ClientGone)),
            Taken::Some => Poll::Ready(Ok(None)),
            Taken::Nothing => self.client.transport.poll_writable().map(|()| Ok(None)),
        }
    }

    fn send_spool(&mut self) -> Result<Taken, Reason> {
        let Some(spool) = &mut self.spool else { return Ok(Taken::All) };
        let before = spool.left();
        let taken = spool.try_send(&self.client.transport)?;
        self.pace.count(usize::try_from(before - spool.left()).unwrap_or(usize::MAX));
        if taken == Taken::All {
            self.spool = None;
        }
        Ok(taken)
    }

    /// Waits until the client has read everything. False if it is gone.
    pub async fn drain_spool(&mut self) -> bool {
        let sent = self.send_all().await;
        self.note_lost(sent)
    }

    async fn send_all(&mut self) -> Result<(), Reason> {
        loop {
            match self.send_spool()? {
                Taken::All => return Ok(()),
                Taken::Some => yield_now().await,
                Taken::Nothing => {
                    let writable = self.pace.wait(self.client.transport.writable()).await;
                    writable.map_err(|_| Reason::WriteTimeout)?;
                }
            }
        }
    }
}

fn memory_bytes(context: &ServerContext) -> usize {
    if context.memory.is_scarce() { SCARCE_MEMORY_BYTES } else { MEMORY_BYTES }
}
