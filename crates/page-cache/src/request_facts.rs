//! What a request may get from the cache, read once.
//!
//! Called first for every request of an app that has a cache. Invariant: whatever may be personal
//! is a [`Reason`] to pass the cache by, in both directions.

use crate::conditions::Conditions;
use crate::cookies::{CookieRules, Visitor};
use crate::directives::RequestDirectives;
use crate::known_fields;
use crate::message::Request;
use crate::pattern::NamePattern;
use crate::policy::Policy;
use crate::reason::Reason;
use outboard_http1::Method;

/// What an application never wants kept, whatever its responses say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guard {
    /// What cookies mean.
    pub cookies: CookieRules,
    /// Fields of requests that change nothing, in lower case, beside those that are known.
    pub harmless_fields: Vec<NamePattern>,
    /// Paths below the app's prefix.
    pub admin_paths: Vec<NamePattern>,
}

/// The facts of a request that the cache may have to do with.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts<'a> {
    /// Whether the method is HEAD; it is GET otherwise.
    pub is_head: bool,
    /// Cache-Control, as far as it is heeded.
    pub directives: RequestDirectives,
    /// The conditions and the range.
    pub conditions: Conditions<'a>,
    /// Whether there are credentials.
    pub has_authorization: bool,
    /// Who asks, by the cookies.
    pub visitor: Visitor,
    /// Whether some field may say who asks.
    pub has_unknown_field: bool,
}

impl<'a> RequestFacts<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// Why it has nothing to do with the cache.
    pub fn read(request: Request<'a>, guard: &Guard, policy: &Policy) -> Result<Self, Reason> {
        let is_head = match request.method {
            Method::Get => false,
            Method::Head => true,
            _ => return Err(Reason::Method),
        };
        if guard.admin_paths.iter().any(|pattern| pattern.matches(request.path)) {
            return Err(Reason::AdminPath);
        }
        if has_body(request) {
            return Err(Reason::RequestBody);
        }
        let visitor = guard.cookies.visitor(request.fields);
        if visitor == Visitor::Known {
            return Err(Reason::LoginCookie);
        }
        let conditions = Conditions::read(request.fields);
        if conditions.concern_the_origin {
            return Err(Reason::Precondition);
        }
        let directives = if policy.heeds_requests {
            RequestDirectives::read(request.fields)
        } else {
            RequestDirectives::default()
        };
        let has_authorization = request.fields.contains("authorization");
        let mut names = request.fields.0.iter().map(|(name, _)| *name);
        let has_unknown_field =
            names.any(|name| known_fields::is_unknown(name, &guard.harmless_fields));
        Ok(Self { is_head, directives, conditions, has_authorization, visitor, has_unknown_field })
    }

    /// Whether it could be anybody's, so that what it gets may be made for others too.
    pub fn is_anonymous(&self) -> bool {
        self.visitor == Visitor::Anonymous && !self.has_authorization && !self.has_unknown_field
    }
}

/// RFC 9112 6.3: either field announces a body.
fn has_body(request: Request<'_>) -> bool {
    request.fields.contains("transfer-encoding")
        || request.fields.first("content-length").is_some_and(|length| length != b"0")
}
