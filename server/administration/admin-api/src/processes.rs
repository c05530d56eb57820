//! Processes of apps: programs that run next to PHP.

use crate::endpoint::{Description, Endpoint, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] = &[describe::<Restart>()];

/// Has programs end, as by a stop, and begin again. Each begins when it has ended; the reply does not wait for that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restart {
    /// Only those of this app.
    pub app: Option<String>,
    /// Only this process.
    pub process: Option<String>,
}

/// The reply to [`Restart`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restarted {
    /// Number of instances that end and begin again.
    pub instances: usize,
}

impl Endpoint for Restart {
    type Reply = Restarted;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/process/restart";
}
