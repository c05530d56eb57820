//! The table of reasons for which a request is refused or fails.
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

            /// Status of the response; 0 if the connection is closed without one.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// Stable code for logs and metrics.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// One sentence for users.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    BadRequest 400 "bad_request" "The request is not valid HTTP/1.1.";
    BadPath 400 "bad_path" "The path cannot be decoded.";
    BadChunk 400 "bad_chunk" "The chunked request body is malformed.";
    BodyCut 400 "body_cut" "The client closed the connection before the end of the body.";
    NoApp 404 "no_app" "No app is configured for this host and path.";
    NotFound 404 "not_found" "The file does not exist, and the app has no front controller.";
    ScriptMissing 404 "script_missing" "PHP could not open the script.";
    Denied 404 "denied" "The path is denied by the configuration.";
    DotFile 404 "dot_file" "Files with a leading dot are not served; see static.allow_dotfiles.";
    SymlinkEscape 403 "symlink_escape" "A symbolic link points outside of the root; see static.symlinks.";
    PhpSource 404 "php_source" "The file is or may be the source of a PHP script; see php.extensions.";
    PrivateFile 404 "private_file" "Databases, dumps, backups, logs and keys are not served; see static.allow_private.";
    AuthRequired 401 "auth_required" "The path requires a user and a password.";
    AuthFailed 401 "auth_failed" "The user does not exist, or the password is wrong.";
    AuthRefused 401 "auth_refused" "The service of forward_auth has refused the request; its response is sent.";
    AddressDenied 403 "address_denied" "The address of the client is refused by an access rule.";
    Banned 403 "banned" "The address of the client is banned; see outboard bans.";
    NoIndex 403 "no_index" "The directory has no index file, and the app has no front controller.";
    NotAFile 403 "not_a_file" "The path is neither a regular file nor a directory.";
    Unreadable 403 "unreadable" "The gateway has no permission to read the file.";
    MethodNotAllowed 405 "method_not_allowed" "Static files and composed pages support only GET and HEAD.";
    MethodRefused 405 "method_refused" "CONNECT and TRACE are not supported.";
    PurgeRefused 403 "purge_refused" "PURGE is allowed only from page_cache.purge_from.";
    EntityRequest 400 "entity_request" "The request to the entity store has no id or is malformed.";
    EntityToken 401 "entity_token" "The entity store requires a token; see kv.token.";
    EntityForbidden 403 "entity_forbidden" "The entity store is allowed only for kv.trusted_clients.";
    EntityMethod 405 "entity_method" "Records support only GET, HEAD, PUT and DELETE.";
    HeaderTimeout 408 "header_timeout" "The request headers did not arrive in time.";
    BodyTimeout 408 "body_timeout" "The request body did not arrive in time.";
    ClientCertificate 403 "client_certificate" "The app requires a valid certificate of the client; see require_client_certificate.";
    Misdirected 421 "misdirected" "The TLS connection was opened for another host name.";
    BodyTooLarge 413 "body_too_large" "The request body is larger than limits.body.";
    EntityCondition 412 "entity_condition" "The record does not satisfy If-Match or If-None-Match.";
    EntityTooLarge 413 "entity_too_large" "The value is larger than kv.max_value.";
    TargetTooLong 414 "target_too_long" "The request line is longer than limits.request_line.";
    RateLimited 429 "rate_limited" "The client has sent more requests than rate_limit of an access rule admits.";
    HeadersTooLarge 431 "headers_too_large" "The headers exceed limits.header or limits.header_count.";
    ClientGone 499 "client_gone" "The client closed the connection before the response was complete.";
    Internal 500 "internal" "The gateway failed; this is a bug of Outboard.";
    ReadFailed 500 "read_failed" "The file could not be read.";
    SpoolFailed 500 "spool_failed" "The body could not be written to io.temp_dir.";
    EntityFailed 500 "entity_failed" "The entity store failed or is damaged; see the error log.";
    NotImplemented 501 "not_implemented" "The transfer coding or method is not implemented.";
    WorkerCrashed 502 "worker_crashed" "The PHP process exited during the request.";
    WorkerProtocolError 502 "worker_protocol_error" "The PHP process violated the ring protocol and was killed.";
    BadResponse 502 "bad_response" "PHP sent invalid response headers.";
    BadSendfile 502 "bad_sendfile" "PHP requested to send a file outside of the allowed roots.";
    PartFailed 502 "part_failed" "A part of the composed page failed.";
    UpstreamFailed 502 "upstream_failed" "The request to the upstream failed.";
    Maintenance 503 "maintenance" "The app is in maintenance; see maintenance of the app.";
    AuthBusy 503 "auth_busy" "Too many passwords are being verified.";
    UpstreamBusy 503 "upstream_busy" "Too many concurrent requests to the upstream; see [upstream].";
    UpstreamDown 503 "upstream_down" "No server of the upstream is up; see outboard upstreams.";
    UpstreamOpen 503 "upstream_open" "The circuit breaker of the upstream is open, because too many requests failed.";
    MemoryFull 503 "memory_full" "The memory limit of the gateway is reached; see limits.memory.";
    QueueFull 503 "queue_full" "The app's queue is full.";
    QueueTimeout 503 "queue_timeout" "No PHP worker became free in time.";
    AppDown 503 "app_down" "PHP of the app does not start; see the error log.";
    Draining 503 "draining" "The gateway is stopping.";
    EntityOverload 503 "entity_overload" "The entity store is overloaded.";
    EntityCopies 504 "entity_copies" "Not Enough Replicas: the record was written, but fewer nodes than requested by ack have it.";
    EntityUnreachable 504 "entity_unreachable" "Not Enough Replicas: no Redis node for the record responded in time.";
    Deadline 504 "deadline" "PHP did not respond within limits.request_deadline.";
    NotCached 504 "not_cached" "The client accepts only a cached response, and there is none.";
    PartTimeout 504 "part_timeout" "A script of the composed page exceeded the timeout of its part.";
    UpstreamTimeout 504 "upstream_timeout" "The upstream did not respond in time.";
    VersionNotSupported 505 "version_not_supported" "The HTTP version is not supported.";
    SpoolFull 507 "spool_full" "There is no space for the body in io.temp_dir; see io.max_temp_size.";
    EntityFull 507 "entity_full" "The disk, or the memory of an in-memory namespace, is full.";
    ProxyHeader 0 "proxy_header" "The connection of a proxy does not start with a PROXY header; see proxy_protocol.";
    TooManyConnections 0 "too_many_connections" "The client address reached limits.connections_per_ip or its listener's, the listener its connections, or the server limits.http2_streams.";
    WriteTimeout 0 "write_timeout" "The client did not read the response in time.";
}

impl Reason {
    /// Whether the fault is the server's: such reasons are logged as errors.
    pub fn is_server_fault(self) -> bool {
        self.status() >= 500 && self != Self::Maintenance
    }

    /// The sentence for clients that do not get the reason. A denied file and a missing one must
    /// look the same.
    pub fn public_text(self) -> &'static str {
        match self {
            Self::NotFound
            | Self::ScriptMissing
            | Self::Denied
            | Self::DotFile
            | Self::PhpSource
            | Self::PrivateFile => "Not found.",
            Self::SymlinkEscape
            | Self::NotAFile
            | Self::Unreadable
            | Self::AddressDenied
            | Self::Banned => "Access denied.",
            Self::AuthFailed => Self::AuthRequired.text(),
            Self::Maintenance => "The site is in maintenance. Please try again later.",
            Self::RateLimited => "Too many requests.",
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
