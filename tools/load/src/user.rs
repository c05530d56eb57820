//! [`User`]: a virtual user with its position in the script, its cookies and its values.

/// A virtual user, which has at most one request in flight.
#[derive(Debug, Default)]
pub(crate) struct User {
    pub(crate) is_busy: bool,
    pub(crate) intended_ns: u64,
    /// When the request was sent, or its connection was requested.
    pub(crate) began_ns: u64,
    /// The request has been sent and does not wait for a connection.
    pub(crate) is_sent: bool,
    /// The user is paused until a time.
    pub(crate) is_paused: bool,
    pub(crate) free_since_ns: u64,
    /// The `{seq}` of the request in flight, if it has one.
    pub(crate) seq: Option<u64>,
    pub(crate) script: usize,
    pub(crate) step: usize,
    pub(crate) cookies: Vec<(String, String)>,
    /// From data feeds and captures.
    pub(crate) values: Vec<(String, String)>,
}

impl User {
    /// Sets a value.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        put(&mut self.values, name, value);
    }

    /// Sets a cookie.
    pub(crate) fn set_cookie(&mut self, pair: &str) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        put(&mut self.cookies, name, value);
    }
}

fn put(pairs: &mut Vec<(String, String)>, name: &str, value: &str) {
    match pairs.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => value.clone_into(old),
        None => pairs.push((name.to_owned(), value.to_owned())),
    }
}
