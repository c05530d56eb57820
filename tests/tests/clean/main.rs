//! What one request of a worker leaves for the next, and for those beside it: nothing. Asked over
//! HTTP, of workers that have one request at a time and of such that may have several.

#![forbid(unsafe_code)]

mod databases;
mod failures;
mod things;

use outboard_e2e::{Configured, Docroot};

/// A server with one worker, which may have so many requests at a time.
pub(crate) fn serving(concurrency: usize) -> Configured {
    let docroot = Docroot::of("clean");
    docroot.writable("");
    let sessions = docroot.writable("sessions");
    let text = format!(
        "listen = \"127.0.0.1:0\"\n\
         [log.access]\npath = \"off\"\n\
         [php.ini]\nmemory_limit = \"64M\"\n\"session.save_path\" = {sessions:?}\n\
         [pool]\nmin = 1\nmax = 1\nloopback_slots = 0\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\n\
         [app.site.worker]\nscript = \"www/worker.php\"\nconcurrency = {concurrency}\n"
    );
    Configured::start(docroot, &text)
}

/// One request at a time, and several.
pub(crate) const CONCURRENCIES: [usize; 2] = [1, 4];
