//! The one table of reasons for which a request gets an answer that it did not ask for.
//!
//! Used by everything that refuses or fails a request. Invariant: each reason has one status, one
//! stable code (the word in the error log, in `X-Outboard-Reason`, in the metrics and the docs)
//! and one sentence.

/// Which status and code a reason has.
macro_rules! reasons {
    ($($variant:ident $status:literal $code:literal $text:literal;)*) => {
        /// Why a request was refused or failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $(#[doc = $text] $variant,)*
        }

        impl Reason {
            /// Every reason, in the order of the table.
            pub const ALL: &[Reason] = &[$(Reason::$variant,)*];

            /// Status of the answer; 0 when the connection is closed without one.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// Stable word for logs and metrics.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// One sentence for people.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    BadRequest 400 "bad_request" "The request is not valid HTTP/1.1.";
    BadPath 400 "bad_path" "The path cannot be decoded.";
    BadChunk 400 "bad_chunk" "The chunked body is malformed.";
    BodyCut 400 "body_cut" "The client closed in the middle of the body.";
    NoApp 404 "no_app" "No app is configured for this host and path.";
    NotFound 404 "not_found" "There is no such file, and the app has no front controller.";
    ScriptMissing 404 "script_missing" "PHP could not open the script.";
    Denied 404 "denied" "The path is denied by the configuration.";
    DotFile 404 "dot_file" "Dot-files are not served.";
    SymlinkEscape 403 "symlink_escape" "A symbolic link leads out of the root; see static.symlinks.";
    PhpSource 404 "php_source" "The file is, or could be, the source of a PHP script; see php.extensions.";
    PrivateFile 404 "private_file" "Databases, dumps, backups, logs and keys are not served; see static.allow_private.";
    NoIndex 403 "no_index" "The folder has no index file, and the app has no front controller.";
    NotAFile 403 "not_a_file" "Neither a regular file nor a folder.";
    Unreadable 403 "unreadable" "The file is not readable for the gateway.";
    MethodNotAllowed 405 "method_not_allowed" "A static file or a composed page answers GET and HEAD only.";
    MethodRefused 405 "method_refused" "CONNECT and TRACE are not served.";
    PurgeRefused 403 "purge_refused" "PURGE is for the addresses of page_cache.purge_from.";
    EntityRequest 400 "entity_request" "The request to the entity store has no id, or a part of it cannot be read.";
    EntityToken 401 "entity_token" "The entity store wants a token; see kv.token.";
    EntityForbidden 403 "entity_forbidden" "The entity store is for the addresses of kv.trusted_clients.";
    EntityMethod 405 "entity_method" "An entity answers GET, HEAD, PUT and DELETE only.";
    HeaderTimeout 408 "header_timeout" "The request head did not arrive in time.";
    BodyTimeout 408 "body_timeout" "The request body did not arrive in time.";
    Misdirected 421 "misdirected" "The connection was made for another name; ask on one of its own.";
    BodyTooLarge 413 "body_too_large" "The body is longer than limits.body.";
    EntityCondition 412 "entity_condition" "The record is not as If-Match or If-None-Match want it.";
    EntityTooLarge 413 "entity_too_large" "The value is longer than entities.max_value.";
    TargetTooLong 414 "target_too_long" "The request line is longer than limits.request_line.";
    HeadersTooLarge 431 "headers_too_large" "The headers exceed limits.header or limits.header_count.";
    ClientGone 499 "client_gone" "The client closed before the answer was complete.";
    Internal 500 "internal" "The gateway failed; this is a bug of Outboard.";
    ReadFailed 500 "read_failed" "The file could not be read.";
    SpoolFailed 500 "spool_failed" "The body could not be written to the spool folder.";
    EntityFailed 500 "entity_failed" "The entity store failed or is damaged; the error log says where.";
    NotImplemented 501 "not_implemented" "The transfer coding or method is not implemented.";
    WorkerCrashed 502 "worker_crashed" "The PHP process ended in the middle of the request.";
    WorkerBroke 502 "worker_broke" "The PHP process broke the ring protocol and was ended.";
    BadResponse 502 "bad_response" "PHP sent a response head that is not valid HTTP.";
    BadSendfile 502 "bad_sendfile" "PHP named a file to send that is outside of the allowed roots.";
    PartFailed 502 "part_failed" "A part of the composed page could not be made.";
    UpstreamFailed 502 "upstream_failed" "A part of the page, or all of it, could not be fetched from its upstream.";
    UpstreamBusy 503 "upstream_busy" "Too many requests to the upstream are under way; see [upstream].";
    MemoryFull 503 "memory_full" "The gateway holds as much in memory as limits.memory allows.";
    QueueFull 503 "queue_full" "The app's queue is full.";
    QueueTimeout 503 "queue_timeout" "No PHP worker became free in time.";
    AppDown 503 "app_down" "The app's PHP does not start; see the error log.";
    Draining 503 "draining" "The gateway is stopping.";
    EntityOverload 503 "entity_overload" "More waits for the entity store than it can do in time.";
    EntityCopies 504 "entity_copies" "Not Enough Replicas: the record was written, and fewer nodes than ack have it so far.";
    EntityUnreachable 504 "entity_unreachable" "Not Enough Replicas: no node of Redis answered for the record in time.";
    Deadline 504 "deadline" "PHP did not answer before limits.request_deadline.";
    NotCached 504 "not_cached" "The client wants a stored page only, and there is none.";
    PartTimeout 504 "part_timeout" "A script of the composed page took longer than its part's timeout.";
    UpstreamTimeout 504 "upstream_timeout" "The upstream did not answer in time.";
    VersionNotSupported 505 "version_not_supported" "Only HTTP/1.0 and HTTP/1.1 are spoken here.";
    SpoolFull 507 "spool_full" "The disk of io.temp_dir, or io.max_temp_size, has no room for the body.";
    EntityFull 507 "entity_full" "The disk, or the memory of a namespace in memory, is full.";
    TooManyConnections 0 "too_many_connections" "The address has as much open as limits.connections_per_ip allows, or there are limits.streams.";
    WriteTimeout 0 "write_timeout" "The client did not take the answer in time.";
}

impl Reason {
    /// Whether the fault is the server's: such reasons are logged as errors.
    pub fn is_server_fault(self) -> bool {
        self.status() >= 500
    }

    /// The sentence for visitors who are not told why. What a refused file is, is not theirs to know:
    /// a copy of a source, a denied one and none at all look the same.
    pub fn public_text(self) -> &'static str {
        match self {
            Self::NotFound
            | Self::ScriptMissing
            | Self::Denied
            | Self::DotFile
            | Self::PhpSource
            | Self::PrivateFile => "There is nothing here.",
            Self::SymlinkEscape | Self::NotAFile | Self::Unreadable => "This is not served.",
            _ => self.text(),
        }
    }

    /// Position in [`Reason::ALL`], for counters.
    pub fn index(self) -> usize {
        self as usize
    }
}

impl From<outboard_http1::HeadError> for Reason {
    fn from(error: outboard_http1::HeadError) -> Self {
        match error.status() {
            414 => Self::TargetTooLong,
            431 => Self::HeadersTooLarge,
            501 => Self::NotImplemented,
            505 => Self::VersionNotSupported,
            _ => Self::BadRequest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_indices_are_positions() {
        let mut codes: Vec<_> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Reason::ALL.len());
        for (position, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), position);
        }
    }
}
