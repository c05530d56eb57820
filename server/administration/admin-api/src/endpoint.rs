//! [`Endpoint`]: a request of the API with its reply, and its [`Description`] in the reference.
//!
//! Each module of the crate implements it for its requests.

use crate::query;
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

pub(crate) const fn describe<E: Endpoint>() -> Description {
    Description {
        method: E::METHOD,
        path: E::PATH,
        parameters: || schemars::schema_for!(E),
        reply: || schemars::SchemaGenerator::default().into_root_schema_for::<E::Reply>(),
    }
}
