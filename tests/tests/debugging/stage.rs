//! A server, the debugger of its workers, and the fixtures.

use outboard_e2e::{Configured, Connection, Debugger, Docroot, Request};

/// How the scripts of the fixtures are run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Classic,
    Worker,
    Rewind,
    Coroutines,
}

/// What clients get of workers without Xdebug, and with it.
pub(crate) const USUAL: &str = "nobody 5 0 red,1 blue,the mast is broken,without\n";
pub(crate) const DEBUGGED: &str = "nobody 5 0 red,1 blue,the mast is broken,with\n";

/// See the module.
pub(crate) struct Stage {
    pub(crate) debugger: Debugger,
    pub(crate) site: Configured,
}

impl Mode {
    pub(crate) const ALL: [Self; 4] = [Self::Classic, Self::Worker, Self::Rewind, Self::Coroutines];

    fn tables(self) -> &'static str {
        match self {
            Self::Classic => "",
            Self::Worker => "[app.site.worker]\nscript = \"www/worker.php\"\n",
            Self::Rewind => {
                "[app.site.worker]\nscript = \"www/rewind.php\"\nisolation = \"rewind\"\n"
            }
            Self::Coroutines => "[app.site.worker]\nscript = \"www/worker.php\"\nconcurrency = 8\n",
        }
    }
}

impl Stage {
    /// Local clients may debug. The tables follow that of the pool.
    #[track_caller]
    pub(crate) fn new(mode: Mode, tables: &str) -> Stage {
        Stage::started(
            mode,
            &format!("[app.site.debug]\nclients = [\"127.0.0.1\"]\n[app.site.pool]\n{tables}"),
            "",
        )
    }

    /// With these tables, and these keys before all tables.
    #[track_caller]
    pub(crate) fn started(mode: Mode, tables: &str, keys: &str) -> Stage {
        Stage::of(Docroot::of("debugging"), mode, tables, keys)
    }

    /// With this file among the ini files.
    #[track_caller]
    pub(crate) fn with_ini_file(mode: Mode, tables: &str, content: &str) -> Stage {
        let docroot = Docroot::of("debugging");
        let folder = docroot.beside().folder("conf.d");
        docroot.beside().file("conf.d/20-xdebug.ini", content);
        let scanned = format!("{tables}[app.site.php]\nini_scan_dir = {folder:?}\n");
        Stage::of(docroot, mode, &scanned, "")
    }

    #[track_caller]
    fn of(docroot: Docroot, mode: Mode, tables: &str, keys: &str) -> Stage {
        let debugger = Debugger::listen();
        let text = Configured::text(&format!(
            "{tables}\n{}\
             [app.site.php.ini]\n\"xdebug.client_host\" = \"127.0.0.1\"\n\"xdebug.client_port\" = {}\n",
            mode.tables(),
            debugger.port(),
        ));
        let text = match mode {
            Mode::Classic => text,
            _ => text.replace("root = \"www\"\n", "root = \"www\"\nmode = \"worker\"\n"),
        };
        Stage { debugger, site: Configured::start(docroot, &format!("{keys}{text}")) }
    }

    /// Has a request debugged, so that PHP of the next one has started: it connects within its deadline on a busy machine.
    #[track_caller]
    pub(crate) fn warm_up(&self) {
        let mut waiting = self.debugged("/");
        self.debugger.accept().finish();
        assert_eq!(waiting.response().expect("the server answers").text(), DEBUGGED);
    }

    /// The file that is debugged.
    pub(crate) fn page(&self) -> String {
        self.site.docroot().path().join("page.php").display().to_string()
    }

    /// Sends a request.
    #[track_caller]
    pub(crate) fn begin(&self, request: &Request) -> Connection {
        let mut connection = Connection::open(self.site.address());
        connection.send(&request.to_bytes("localhost")).expect("the server reads");
        connection
    }

    /// Sends a request that has a trigger.
    #[track_caller]
    pub(crate) fn debugged(&self, target: &str) -> Connection {
        self.begin(&Request::get(target).header("Cookie", "XDEBUG_SESSION=test"))
    }
}
