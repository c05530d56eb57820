//! [`User`]: who holds a connection: where he stands in his script and what he carries with him.

/// One user; the request in flight, if there is one, is his.
#[derive(Debug, Default)]
pub(crate) struct User {
    pub(crate) is_busy: bool,
    pub(crate) intended_ns: u64,
    /// When the request was sent, or its connection was asked for.
    pub(crate) began_ns: u64,
    /// His request has gone out, and does not wait for a connection.
    pub(crate) is_sent: bool,
    /// Does nothing until a time.
    pub(crate) is_resting: bool,
    pub(crate) free_since_ns: u64,
    /// The `{seq}` of the request in flight, if its bytes were made for it.
    pub(crate) seq: Option<u64>,
    pub(crate) script: usize,
    pub(crate) step: usize,
    pub(crate) cookies: Vec<(String, String)>,
    /// From the data feeds and from captures.
    pub(crate) values: Vec<(String, String)>,
}

impl User {
    /// Sets a value, in place of what it was.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        put(&mut self.values, name, value);
    }

    /// Keeps a cookie, in place of what it was.
    pub(crate) fn keep_cookie(&mut self, pair: &str) {
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
