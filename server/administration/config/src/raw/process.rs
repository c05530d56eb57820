//! `[app.NAME.process.PROCESS]`: a program that runs next to the workers of an app.

use super::table::table;
use crate::scalar::{As, ByteSize, FilePath, OrEmpty, OrZero, Period, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

table! {
    /// A program that runs all the time, as the app's user, in its sandbox and with its environment.
    #[derive(PartialEq, Eq)]
    #[schemars(extend(
        "required" = ["command"],
        "x-hint" = "a process has a name: write [app.NAME.process.PROCESS] and its keys below it",
    ))]
    pub struct Process {
        /// The program and its arguments, without a shell. A name without a slash is looked up in the app's `PATH`.
        #[schemars(extend(
            "x-alias" = ["cmd", "ExecStart", "exec"],
            "x-hint" = "a list: command = [\"php\", \"artisan\", \"queue:work\"]",
        ))]
        #[serde(with = "As::<Vec<PlainText>>")]
        pub command: Vec<String> = Vec::new(),
        /// How many of it run. Each has its number, from 0, in `OUTBOARD_INSTANCE`. 0: none.
        #[schemars(range(max = 100), extend("x-alias" = ["numprocs", "num_procs", "replicas"]))]
        pub instances: u32 = 1,
        /// Working directory. Default: the app's root, or the project around a `public`, `web`, `htdocs` or `webroot`.
        #[schemars(extend("x-alias" = ["WorkingDirectory", "cwd"]))]
        #[serde(with = "As::<OrEmpty<FilePath>>")]
        pub directory: PathBuf = PathBuf::new(),
        /// Memory of an instance, with everything that it has started, above which it is stopped and started again; above
        /// twice as much it is killed. 0: unlimited.
        #[schemars(extend("x-alias" = ["memory_limit", "MemoryMax"]))]
        #[serde(rename = "max_memory", with = "As::<OrZero<ByteSize>>")]
        pub max_memory_bytes: Option<u64> = Some(512 << 20),
        /// Processes that an instance may start, all at the same time; with more it is killed.
        #[schemars(range(min = 1, max = 10_000), extend("x-alias" = ["TasksMax"]))]
        pub max_children: u32 = 200,
        /// Delay before the next start of an instance that has ended before `stable_after`. It doubles with each such end.
        #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["RestartSec"]))]
        #[serde(rename = "backoff", with = "As::<Period>")]
        pub backoff_ms: u64 = 100,
        /// The longest such delay.
        #[schemars(extend("x-minimum" = "10ms"))]
        #[serde(rename = "max_backoff", with = "As::<Period>")]
        pub max_backoff_ms: u64 = 30_000,
        /// An instance that has run for so long is started again at once when it ends.
        #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["startsecs", "StartLimitIntervalSec"]))]
        #[serde(rename = "stable_after", with = "As::<Period>")]
        pub stable_after_ms: u64 = 1_000,
        /// Signal that requests the end of an instance.
        #[schemars(extend("x-alias" = ["stopsignal", "KillSignal"]))]
        pub stop_signal: StopSignal = StopSignal::SigTerm,
        /// Time after it until everything that is left of the instance is killed. A queue worker needs as long as its
        /// longest job.
        #[schemars(extend("x-maximum" = "1d", "x-alias" = ["stopwaitsecs", "TimeoutStopSec"]))]
        #[serde(rename = "stop_timeout", with = "As::<Period>")]
        pub stop_timeout_ms: u64 = 30_000,
        /// Directories with files whose changes start the process again, with `environment = "development"`.
        #[serde(with = "As::<Vec<FilePath>>")]
        pub watch: Vec<PathBuf> = Vec::new(),
    }
}

/// A signal that requests the end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum StopSignal {
    /// For programs that end with their terminal.
    SigHup = 1,
    /// As by Ctrl-C.
    SigInt = 2,
    /// For programs that take SIGTERM as an order to end at once.
    SigQuit = 3,
    /// For programs with a meaning of their own.
    SigUsr1 = 10,
    /// The same.
    SigUsr2 = 12,
    /// What most programs expect.
    SigTerm = 15,
}

impl StopSignal {
    /// The number of the signal (signal(7)), the same on all machines that are supported.
    pub fn number(self) -> i32 {
        self as i32
    }
}
