//! Reload and stop.

use crate::endpoint::{Description, Endpoint, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] =
    &[describe::<Reload>(), describe::<Stop>(), describe::<Upgrade>()];

/// Reads the configuration again, starts new workers, and replies once they serve. On an error the
/// previous configuration stays in force (status 409).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reload {}

/// The reply to [`Reload`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// The number of the configuration that serves now; it counts up with each reload.
    pub generation: u32,
}

impl Endpoint for Reload {
    type Reply = Reloaded;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/reload";
}

/// Starts the program that is installed now, which takes over the listening sockets, and replies once it
/// serves. If it does not start, this server goes on (status 409).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Upgrade {}

/// The reply to [`Upgrade`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Upgraded {
    /// The process id of the new server.
    pub pid: u32,
}

impl Endpoint for Upgrade {
    type Reply = Upgraded;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/upgrade";
}

/// Stops the server after the requests in progress; replies at once, with status 202.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {}

/// The reply to [`Stop`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    /// Always true.
    pub stopping: bool,
}

impl Endpoint for Stop {
    type Reply = Stopping;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/stop";
}
