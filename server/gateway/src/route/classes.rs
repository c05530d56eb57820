//! What dispatch needs to know of a route before its handler has the request.
//!
//! Asked by [`crate::dispatch`], once per request.

use super::Route;
use crate::app::App;
use crate::latencies::Kind;

impl Route {
    /// Whether a script may have to run.
    pub(crate) fn needs_php(&self) -> bool {
        matches!(self, Self::Script(_) | Self::Page(_))
    }

    /// Whether a tunnel may be requested; whatever else responds has none.
    pub(crate) fn may_tunnel(&self) -> bool {
        matches!(self, Self::Upstream(_) | Self::Refuse(..) | Self::Redirect { .. })
    }

    /// What responds, unless the page cache does.
    pub(crate) fn kind(&self, app: &App) -> Kind {
        match self {
            Self::File(_) | Self::Listing(_) => Kind::File,
            Self::Script(_) => app.kind(),
            Self::Upstream(_) => Kind::Proxy,
            Self::Page(_) => Kind::Composed,
            Self::Refuse(..) | Self::Redirect { .. } | Self::Status(..) => Kind::Other,
        }
    }
}
