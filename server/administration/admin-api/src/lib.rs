//! The admin API: requests and replies of the admin socket, typed for both ends.
//!
//! The gateway serves it and the command line calls it, both through the types here, so that a
//! renamed field is a compile error at both ends. `docs/reference/admin-api.md` is generated from
//! [`ENDPOINTS`]. Invariant: an [`Endpoint`] has one method, one path and one reply type.
//!
//! ```
//! use outboard_admin_api::{Endpoint, cache};
//!
//! let purge = cache::Purge { url: Some("/news".to_owned()), ..cache::Purge::default() };
//! assert_eq!(purge.target(), "/cache/purge?url=%2Fnews");
//! let query = purge.query();
//! assert_eq!(cache::Purge::from_query(&query).unwrap().url.as_deref(), Some("/news"));
//! ```

#![forbid(unsafe_code)]

pub mod bans;
pub mod cache;
pub mod certificates;
pub mod config;
pub mod dashboard;
pub mod kv;
pub mod opcache;
mod query;
#[cfg(test)]
mod reference;
pub mod server;
pub mod snapshot;
pub mod status;
pub mod upstreams;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The method of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads, and changes nothing.
    Get,
    /// Changes something.
    Post,
}

impl Method {
    /// As HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// One request of the API; its fields are the query parameters.
pub trait Endpoint: Serialize + DeserializeOwned + JsonSchema {
    /// The body of a response with status 200 or 202.
    type Reply: Serialize + DeserializeOwned + JsonSchema;
    /// The method.
    const METHOD: Method;
    /// The path.
    const PATH: &'static str;

    /// The query string, percent-encoded; empty without parameters.
    fn query(&self) -> String {
        query::write(self)
    }

    /// Path and query.
    fn target(&self) -> String {
        match self.query() {
            query if query.is_empty() => Self::PATH.to_owned(),
            query => format!("{}?{query}", Self::PATH),
        }
    }

    /// Reads the parameters from a query string; unknown ones are ignored.
    ///
    /// # Errors
    /// One sentence that names the parameter.
    fn from_query(query: &str) -> Result<Self, String> {
        query::read(query)
    }
}

/// The body of every other response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The error, in one sentence.
    pub error: String,
}

/// What the reference says of an endpoint.
#[derive(Debug)]
pub struct Description {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: &'static str,
    /// The JSON schema of the parameters.
    pub parameters: fn() -> schemars::Schema,
    /// The JSON schema of the reply.
    pub reply: fn() -> schemars::Schema,
}

const fn describe<E: Endpoint>() -> Description {
    Description {
        method: E::METHOD,
        path: E::PATH,
        parameters: || schemars::schema_for!(E),
        reply: || schemars::SchemaGenerator::default().into_root_schema_for::<E::Reply>(),
    }
}

/// Every endpoint that replies with JSON, by module.
pub const ENDPOINTS: &[&[Description]] = &[
    status::ENDPOINTS,
    server::ENDPOINTS,
    opcache::ENDPOINTS,
    snapshot::ENDPOINTS,
    certificates::ENDPOINTS,
    cache::ENDPOINTS,
    bans::ENDPOINTS,
    upstreams::ENDPOINTS,
    kv::ENDPOINTS,
    config::ENDPOINTS,
    dashboard::ENDPOINTS,
];
