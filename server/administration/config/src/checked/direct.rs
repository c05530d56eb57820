//! Which settings of an app exclude direct connections, on which its workers respond without the gateway.
//!
//! Called by the check and by the gateway. Invariant: every setting is named here, so that a new one does not compile
//! before its effect here is decided.

use super::app::App;
use super::worker::Mode;
use crate::raw::Isolation;

impl App {
    /// Whether connections of clients may go to its workers.
    pub fn has_direct(&self) -> bool {
        matches!(&self.mode, Mode::Worker(worker) if worker.direct)
            && self.excludes_direct().is_none()
    }

    /// The first setting that the gateway has to enforce on each request or response.
    pub fn excludes_direct(&self) -> Option<&'static str> {
        let Self {
            mode,
            conditions,
            rewrites,
            headers,
            prefetch,
            page_cache,
            access,
            requires_client_certificate,
            maintenance,
            debug,
            // Whose routes host and path decide: those of scripts are templates, others are not.
            name: _,
            hosts: _,
            path_prefix: _,
            root: _,
            index: _,
            front_controller: _,
            compose: _,
            proxies: _,
            deny: _,
            static_files: _,
            compressed_files_bytes: _,
            autoindex: _,
            allow_private: _,
            // What the worker applies, or leaves to the gateway when it matters.
            compress: _,
            sendfile: _,
            limits: _,
            log: _,
            error_pages: _,
            // What concerns processes and what scripts ask for.
            tasks: _,
            kv_namespaces: _,
            rate_limits: _,
            pool: _,
            php: _,
            sandbox: _,
            user: _,
            group: _,
            processes: _,
        } = self;
        let is_resident =
            matches!(mode, Mode::Worker(worker) if worker.isolation == Isolation::Reset);
        [
            (!is_resident, "worker.isolation"),
            (!conditions.is_empty(), "condition"),
            (!rewrites.is_empty(), "rewrite"),
            (!headers.is_empty(), "headers"),
            (!prefetch.is_empty(), "prefetch"),
            (page_cache.is_some(), "page_cache"),
            (!access.rules.is_empty(), "access"),
            (!access.identity_headers.is_empty(), "access"),
            (maintenance.is_some(), "maintenance"),
            (debug.is_on(), "debug"),
            (*requires_client_certificate, "require_client_certificate"),
        ]
        .into_iter()
        .find_map(|(excludes, key)| excludes.then_some(key))
    }
}
