//! Servers with several threads: what a server promises does not depend on their number.

use crate::{Client, Configured, Docroot};

/// The numbers of threads that tests run with, also where there are fewer cores.
pub const THREAD_COUNTS: [usize; 3] = [1, 2, 4];
/// So many connections are spread over all threads, as good as certainly.
pub const VISITORS: usize = 32;

impl Configured {
    /// Serves the fixtures of a subject with this number of threads and these tables. PHP may write to the
    /// folders `state` and `var`.
    #[track_caller]
    pub fn with_threads(subject: &str, threads: usize, tables: &str) -> Configured {
        let docroot = Docroot::of(subject);
        docroot.writable("state");
        docroot.writable("var");
        Configured::start(docroot, &Configured::text_with_threads(threads, tables))
    }

    /// The configuration that [`Configured::with_threads`] uses.
    pub fn text_with_threads(threads: usize, tables: &str) -> String {
        // So that each thread has some of the connections, however few they are.
        format!("threads = {threads}\nio.gather_connections = false\n{}", Configured::text(tables))
    }

    /// So many visitors that each thread has some, with a connection each.
    pub fn visitors(&self) -> Vec<Client> {
        (0..VISITORS).map(|_| self.client()).collect()
    }
}
