//! A worker with a script that stays.

use super::{Host, Response, TempDir, Worker, finished, get, settings_of_worker};
use outboard_ring::control::{Event, HostSettings};

/// Worker mode: a script of the test's own, its host and one worker.
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

    /// With so many requests at a time.
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

    /// Asks for `/NAME` and returns what a request that succeeded says.
    #[track_caller]
    pub fn get(&mut self, name: &str) -> String {
        finished(&self.request(name))
    }

    pub fn request(&mut self, name: &str) -> Response {
        self.worker.request(&get(name))
    }

    /// Has the worker leave, and waits until it has; its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.worker.stop();
        self.left()
    }

    /// Waits until the worker has gone; its exit code.
    pub fn left(&mut self) -> Option<i32> {
        match self.host.event() {
            Event::Exited { worker, code, .. } if worker == self.worker.number => code,
            other => panic!("expected the end of the worker, got {other:?}"),
        }
    }
}

/// A script that serves with this handler body, which finds the path without its slash in `$at`.
pub fn serve(body: &str) -> String {
    format!(
        "Outboard\\serve(function (Outboard\\Request $request) {{
             $at = substr($request->path(), 1); {body}
         }});"
    )
}
