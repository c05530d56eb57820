//! A worker in worker mode.

use super::{Host, Response, TempDir, Worker, finished, get, settings_of_worker};
use outboard_ring::control::{Event, HostSettings};

/// A worker with a script of the test, and its host.
pub struct ScriptWorker {
    pub worker: Worker,
    pub host: Host,
    pub folder: TempDir,
}

impl ScriptWorker {
    /// The code after `<?php`.
    pub fn new(code: &str) -> Self {
        Self::with(code, |_| {})
    }

    /// With a handler for `Outboard\serve()`: the body of a function of `$request`.
    pub fn serving(body: &str) -> Self {
        Self::new(&serve(body))
    }

    /// With this number of requests at a time.
    pub fn concurrent(concurrency: u32, code: &str) -> Self {
        Self::with(code, |settings| {
            settings.worker.as_mut().unwrap().concurrency = concurrency;
        })
    }

    pub fn with(code: &str, change: impl FnOnce(&mut HostSettings)) -> Self {
        let folder = TempDir::new();
        let mut settings = settings_of_worker(folder.write("worker.php", &format!("<?php {code}")));
        change(&mut settings);
        let mut host = Host::with(settings);
        let worker = host.fork();
        Self { worker, host, folder }
    }

    /// Requests `/NAME` and returns the output of the request, which must succeed.
    #[track_caller]
    pub fn get(&mut self, name: &str) -> String {
        finished(&self.request(name))
    }

    pub fn request(&mut self, name: &str) -> Response {
        self.worker.request(&get(name))
    }

    /// Stops the worker and waits for its exit; returns the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.worker.stop();
        self.wait_for_exit()
    }

    /// Waits for the worker's exit; returns the exit code.
    pub fn wait_for_exit(&mut self) -> Option<i32> {
        match self.host.event() {
            Event::Exited { worker, code, .. } if worker == self.worker.number => code,
            other => panic!("expected the end of the worker, got {other:?}"),
        }
    }
}

/// A script with this handler body, in which `$at` is the path without its slash.
pub fn serve(body: &str) -> String {
    format!(
        "Outboard\\serve(function (Outboard\\Request $request) {{
             $at = substr($request->path(), 1); {body}
         }});"
    )
}

/// A script in `/tmp` whose function `response()` prints what an earlier request has left, and which then runs
/// `asking`, the call for requests.
pub fn dirty(asking: &str) -> String {
    let code = include_str!("../fixtures/dirty.php").strip_prefix("<?php").expect("a script");
    format!("chdir('/tmp'); {code} {asking}")
}
