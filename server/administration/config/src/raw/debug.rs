//! `[app.NAME.debug]`: who may debug the PHP of an app.

use super::table::table;
use crate::scalar::Peer;

table! {
    /// Debugging with Xdebug: requests with a trigger are handled by workers of their own.
    pub(crate) struct Debug {
        /// Networks whose clients may start a debugger, with the header `Xdebug-Trigger`, a cookie or a parameter of the query
        /// (`XDEBUG_TRIGGER`, `XDEBUG_SESSION`, `XDEBUG_SESSION_START`). `"unix"` stands for peers on a Unix socket.
        /// Default: the machine itself with `environment = "development"`, else nobody.
        #[schemars(extend("x-alias" = ["allow", "xdebug"]))]
        pub(crate) clients: Option<Vec<Peer>> = None,
        /// Maximum requests, and tasks, that are debugged at a time. Others wait for `pool.queue_timeout`.
        #[schemars(range(min = 1, max = 64))]
        pub(crate) max: u32 = 4,
        /// Whether all workers have an Xdebug that the ini files load, which slows down all requests.
        pub(crate) in_all_workers: bool = false,
    }
}
