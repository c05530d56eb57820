//! Why the cache was passed by, or an answer not kept: one table for Cache-Status, the command
//! line and the documentation.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $text:literal;)+) => {
        /// Why a request passes the cache by, or why its answer is not kept.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            /// All of them, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word for it, as it stands in `Cache-Status`.
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
    Method = "method", "Only GET and HEAD are answered from the cache.";
    /// The request has a body.
    RequestBody = "request_body", "The request has a body.";
    /// The request has credentials and the answer does not say that it is for all.
    Authorization = "authorization", "The request carries credentials.";
    /// A cookie says that somebody is logged in, or has a cart.
    LoginCookie = "login_cookie", "A cookie says that somebody is logged in or has a cart.";
    /// A cookie that nobody knows, and a page that does not say that it is for all.
    UnknownCookie = "unknown_cookie", "The request has a cookie that may change the page, and the page does not say that it is for everybody.";
    /// A field that nobody knows, and a page that does not say that it is for all.
    UnknownField = "unknown_field", "The request has a field that may say who asks, and the page does not say that it is for everybody.";
    /// A path that is never kept.
    AdminPath = "admin_path", "The path is one that is never kept.";
    /// An audit found that visitors get different pages.
    Audit = "audit", "An audit found that the page is not the same for everybody.";
    /// If-Match or If-Unmodified-Since, which concern the origin alone.
    Precondition = "precondition", "The request has a condition that only the application can judge.";
    /// The request said no-store.
    RequestNoStore = "request_no_store", "The request asks not to be kept.";
    /// The answer said no-store.
    NoStore = "no_store", "The page says no-store.";
    /// The answer said private.
    Private = "private", "The page says that it is for one user.";
    /// The answer sets a cookie.
    SetCookie = "set_cookie", "The page sets a cookie.";
    /// The script used a session.
    Session = "session", "The page used a session.";
    /// The status code is not one to keep.
    Status = "status", "Answers with this status are not kept.";
    /// Nothing says how long the answer may be kept.
    NoLifetime = "no_lifetime", "Nothing says that the page may be kept for any time.";
    /// The answer varies by things that are not in the request.
    VaryStar = "vary_star", "The page says that it varies by more than the request.";
    /// Larger than what one entry may have.
    TooLarge = "too_large", "The page is larger than the cache keeps.";
    /// The answer was not whole.
    Incomplete = "incomplete", "The answer was not received whole.";
    /// The script had it sent piece by piece (`flush()`).
    Streamed = "streamed", "The page was sent piece by piece.";
    /// The script had a file sent.
    File = "file", "The page is a file that the server sends by itself.";
    /// A purge came while the answer was made.
    PurgedMeanwhile = "purged_meanwhile", "The page was purged while it was made.";
}
