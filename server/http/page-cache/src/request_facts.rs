//! The facts that decide whether a request may use the cache.
//!
//! Called first for every request of an app with a cache. Invariant: a request that may be personal
//! bypasses the cache in both directions, for a [`Reason`].

use crate::conditions::Conditions;
use crate::cookies::{CookieRules, Visitor};
use crate::directives::RequestDirectives;
use crate::freshness::Policy;
use crate::known_fields;
use crate::message::Request;
use crate::pattern::NamePattern;
use crate::reason::Reason;
use outboard_http1::Method;

/// Ignored cookies reach PHP and are not part of the key: so many that PHP could fail over them are no matter of
/// the page any more.
const MAX_COOKIE_BYTES: usize = 8 * 1024;

/// Which requests of an application bypass the cache, whatever its responses say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BypassRules {
    /// The meaning of cookies.
    pub cookies: CookieRules,
    /// Further fields of requests that do not change a page, in lower case.
    pub ignored_fields: Vec<NamePattern>,
    /// Paths below the app's prefix that are never cached.
    pub bypass_paths: Vec<NamePattern>,
}

/// The facts of a request that may use the cache.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts<'a> {
    /// Whether the method is HEAD; it is GET otherwise.
    pub is_head: bool,
    /// Cache-Control, if the policy honors it.
    pub directives: RequestDirectives,
    /// The conditions and the range.
    pub conditions: Conditions<'a>,
    /// Whether the request has credentials.
    pub has_authorization: bool,
    /// The visitor as far as cookies identify one.
    pub visitor: Visitor,
    /// Whether an unknown field may identify the visitor.
    pub has_unknown_field: bool,
}

impl<'a> RequestFacts<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// Why the request bypasses the cache.
    ///
    /// # Examples
    ///
    /// ```
    /// use outboard_http1::Method;
    /// use outboard_page_cache::{BypassRules, Fields, Policy, Reason, Request, RequestFacts};
    ///
    /// let rules = BypassRules::default();
    /// let request = |method| Request { method, path: b"/", fields: Fields(&[]) };
    /// let facts = RequestFacts::read(request(Method::Get), &rules, &Policy::STANDARD)?;
    /// assert!(facts.is_anonymous());
    /// let bypassed = RequestFacts::read(request(Method::Post), &rules, &Policy::STANDARD);
    /// assert_eq!(bypassed.unwrap_err(), Reason::Method);
    /// # Ok::<(), Reason>(())
    /// ```
    pub fn read(
        request: Request<'a>,
        guard: &BypassRules,
        policy: &Policy,
    ) -> Result<Self, Reason> {
        let is_head = match request.method {
            Method::Get => false,
            Method::Head => true,
            _ => return Err(Reason::Method),
        };
        if guard.bypass_paths.iter().any(|pattern| pattern.matches(request.path)) {
            return Err(Reason::AdminPath);
        }
        if has_body(request) {
            return Err(Reason::RequestBody);
        }
        let visitor = guard.cookies.visitor(request.fields);
        if visitor == Visitor::Known {
            return Err(Reason::LoginCookie);
        }
        if request.fields.all("cookie").map(<[u8]>::len).sum::<usize>() > MAX_COOKIE_BYTES {
            return Err(Reason::CookieSize);
        }
        let conditions = Conditions::read(request.fields);
        if conditions.need_origin {
            return Err(Reason::Precondition);
        }
        let directives = if policy.honors_client_cache_control {
            RequestDirectives::read(request.fields)
        } else {
            RequestDirectives::default()
        };
        let has_authorization = request.fields.contains("authorization");
        let mut names = request.fields.0.iter().map(|(name, _)| *name);
        let has_unknown_field =
            names.any(|name| known_fields::is_unknown(name, &guard.ignored_fields));
        Ok(Self { is_head, directives, conditions, has_authorization, visitor, has_unknown_field })
    }

    /// Whether nothing identifies the visitor, so that the response may be shared.
    pub fn is_anonymous(&self) -> bool {
        self.visitor == Visitor::Anonymous && !self.has_authorization && !self.has_unknown_field
    }
}

/// Whether either field announces a body (RFC 9112 6.3).
fn has_body(request: Request<'_>) -> bool {
    request.fields.contains("transfer-encoding")
        || request.fields.first("content-length").is_some_and(|length| length != b"0")
}
