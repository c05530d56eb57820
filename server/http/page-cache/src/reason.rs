//! Why a request bypasses the cache or its response is not stored: one table for Cache-Status, the
//! command line and the documentation.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $text:literal;)+) => {
        /// Why a request bypasses the cache, or why its response is not stored.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            /// All reasons in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The `detail` in `Cache-Status`.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// A sentence for people.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

reasons! {
    /// The method is neither GET nor HEAD.
    Method = "method", "Only GET and HEAD are served from the cache.";
    /// The request has a body.
    RequestBody = "request_body", "The request has a body.";
    /// The request has credentials and the response is not marked as shareable.
    Authorization = "authorization", "The request carries credentials.";
    /// A cookie says that the visitor is logged in or has a cart.
    LoginCookie = "login_cookie", "A cookie says that the visitor is logged in or has a cart.";
    /// The request has an unknown cookie, and the page states no lifetime.
    UnknownCookie = "unknown_cookie", "The request has a cookie that may change the page, and the page does not state that it may be shared.";
    /// The request has an unknown field, and the page states no lifetime.
    UnknownField = "unknown_field", "The request has a header that may identify the visitor, and the page does not state that it may be shared.";
    /// The cookies are longer than those of a browser, and PHP may not read all of them.
    CookieSize = "cookie_size", "The cookies of the request are longer than 8 KiB.";
    /// A worker with Xdebug handles the request.
    Debugged = "debugged", "The request is debugged.";
    /// The path is never cached.
    AdminPath = "admin_path", "The path is never cached.";
    /// A rule with a condition applies, so that other requests for the path have another page.
    Condition = "condition", "A rule with a condition applies to the request.";
    /// An audit found that visitors get different pages.
    Audit = "audit", "An audit found that visitors get different pages.";
    /// The request has If-Match or If-Unmodified-Since, which only the origin can evaluate.
    Precondition = "precondition", "The request has a condition that only the application can evaluate.";
    /// The request says no-store.
    RequestNoStore = "request_no_store", "The request says no-store.";
    /// The response says no-store.
    NoStore = "no_store", "The page says no-store.";
    /// The response says private.
    Private = "private", "The page says private.";
    /// The response sets a cookie.
    SetCookie = "set_cookie", "The page sets a cookie.";
    /// The script used a session.
    Session = "session", "The page used a session.";
    /// Responses with this status are not stored.
    Status = "status", "Responses with this status are not stored.";
    /// The response has no lifetime.
    NoLifetime = "no_lifetime", "The page has no lifetime.";
    /// The response varies by more than the request.
    VaryStar = "vary_star", "The page says that it varies by more than the request.";
    /// The response is larger than the limit of an entry.
    TooLarge = "too_large", "The page is larger than the limit of an entry.";
    /// The response was incomplete.
    Incomplete = "incomplete", "The response was incomplete.";
    /// The script streamed the response (`flush()`).
    Streamed = "streamed", "The page was streamed.";
    /// The script delegated a file to the server.
    File = "file", "The page is a file that the server sends itself.";
    /// The script was not called with the whole request, or has failed.
    Unhandled = "unhandled", "PHP could not read all of the request, or an error has ended the script.";
    /// A purge selected the page during its rendering.
    PurgedMeanwhile = "purged_meanwhile", "The page was purged during its rendering.";
}
