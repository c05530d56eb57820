//! [`Connection`]: one connection to a Redis or Valkey server, a command at a time, on the event loop.
//!
//! Used for what gateways share and that is not a cluster's: certificates and rate limits. Invariants: no
//! exchange takes longer than its time; after an error the connection is dropped, because its next reply
//! may be that of an earlier command.

#![forbid(unsafe_code)]

use outboard_config::PageCacheShared;
use outboard_reactor::{now_ms, with_deadline};
use outboard_resp::{Limits, Reader, Value, command};
use outboard_upstream::{Channel, Client, Destination};
use std::future::poll_fn;

/// The largest reply has all challenges of certificates.
const LIMITS: Limits = Limits { bytes: 16 << 20, values: 1 << 14 };

/// See the module.
#[derive(Debug)]
pub struct Connection {
    channel: Channel,
    reader: Reader,
    input: Vec<u8>,
}

impl Connection {
    /// Connects, authenticates and selects the database, each within `timeout_ms`.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the password.
    pub async fn open(
        server: &PageCacheShared,
        client: &Client,
        timeout_ms: u64,
    ) -> Result<Self, String> {
        let PageCacheShared { host, port, tls_verified, user, password, database, .. } = server;
        let to = Destination { host: host.clone(), port: *port, tls_verified: *tls_verified };
        let channel = client.dial(&to, now_ms() + timeout_ms).await;
        let channel = channel.map_err(|error| error.message)?;
        let mut connection = Self { channel, reader: Reader::new(LIMITS), input: Vec::new() };
        if !password.0.is_empty() {
            let user = if user.is_empty() { "default" } else { user };
            let words: [&[u8]; 3] = [b"AUTH", user.as_bytes(), password.0.as_bytes()];
            connection.exchange(&words, timeout_ms).await?;
        }
        if *database > 0 {
            let database = database.to_string();
            connection.exchange(&[b"SELECT", database.as_bytes()], timeout_ms).await?;
        }
        Ok(connection)
    }

    /// Sends a command and receives its reply.
    ///
    /// # Errors
    /// The reply is an error, or there is none in time.
    pub async fn exchange(&mut self, words: &[&[u8]], timeout_ms: u64) -> Result<Value, String> {
        let mut request = Vec::new();
        command(&mut request, words);
        let exchange = async {
            self.channel.write_all(&request).await.map_err(|error| error.to_string())?;
            loop {
                let mut rest = &self.input[..];
                let value = self.reader.read(&mut rest).map_err(|error| error.to_string())?;
                let consumed = self.input.len() - rest.len();
                self.input.drain(..consumed);
                if let Some(value) = value {
                    return Ok(value);
                }
                let read = poll_fn(|_| self.channel.poll_read(&mut self.input)).await;
                if read.map_err(|error| error.to_string())? == 0 {
                    return Err("the connection was closed".to_owned());
                }
            }
        };
        match with_deadline(now_ms() + timeout_ms, exchange).await {
            Ok(Ok(Value::Error(why))) => Err(why),
            Ok(outcome) => outcome,
            Err(_) => Err(format!("no reply in {timeout_ms} ms")),
        }
    }
}

#[cfg(test)]
mod tests;
