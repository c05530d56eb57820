//! The PHP files of the experiments, written from the crate's `site` directory to where a stack can
//! serve them.
//!
//! The files are embedded, so the binary runs from anywhere. In each, `@NAME@` is replaced by a
//! value of the experiment, such as an address or a socket. Invariant: the files are dated an hour
//! back, for the reason in [`crate::site`].

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Result, ResultExt};
use crate::lab::Lab;
use crate::site::date_back;
use crate::system::write;

/// A file of the crate's `site` directory.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../site/", $path)))),*]
    };
}

/// A file of the Laravel application of the examples.
macro_rules! laravel {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../examples/laravel-rewind/", $path)))),*]
    };
}

const LARAVEL: &[(&str, &str)] = laravel![
    "app/Handler.php",
    "app/Http/Kernel.php",
    "bootstrap/app.php",
    "config/app.php",
    "config/logging.php",
    "config/session.php",
    "config/view.php",
    "outboard/Snapshot.php",
    "public/index.php",
    "resources/views/list.blade.php",
    "routes/web.php",
];

/// The pieces of code by which the host's own tests look for state that a rewind leaves.
const PIECES: (&str, &str) =
    ("pieces/pieces.php", include_str!("../../../server/php/php-host/tests/fixtures/pieces.php"));

const FILES: &[(&str, &str)] = files![
    "calls/calls.php",
    "calls/public/index.php",
    "calls/worker.php",
    "compose/inline/index.php",
    "compose/outside.php",
    "compose/search.lua",
    "compose/public/after.php",
    "compose/public/before.php",
    "coroutine/worker.php",
    "database/public/sleep.php",
    "database/worker.php",
    "doctor/public/index.php",
    "doctor/public/page.php",
    "doctor/public/settings.php",
    "entity/worker.php",
    "fetch/page.php",
    "fetch/public/curl.php",
    "fetch/worker.php",
    "framework/modules/demo/controller/index.php",
    "framework/mvc.php",
    "framework/public/index.php",
    "framework/worker.php",
    "mixed/worker.php",
    "rewind/dying.php",
    "rewind/large.php",
    "symfony/app.php",
    "symfony/snapshot.php",
    "symfony/public/index.php",
    "symfony/src/Kernel.php",
    "symfony/src/Page.php",
    "symfony/templates/page.html.twig",
    "symfony/worker.php",
    "worker/globals.php",
    "worker/handle_request.php",
    "worker/hello.php",
    "workloads/Pool.php",
    "workloads/autoload.php",
    "workloads/classic.php",
    "workloads/functions.php",
    "workloads/public/test_01.php",
    "workloads/worker.php",
];

/// A file of the Composer package.
macro_rules! package {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../php/", $path)))),*]
    };
}

/// The files that an application of the package's MVC loads.
const PACKAGE: &[(&str, &str)] = package![
    "autoload.php",
    "src/Container.php",
    "src/Mvc/Action.php",
    "src/Mvc/Application.php",
    "src/Mvc/Arguments.php",
    "src/Mvc/Context.php",
    "src/Mvc/Controller.php",
    "src/Mvc/Errors.php",
    "src/Mvc/Input.php",
    "src/Mvc/Problem.php",
    "src/Mvc/Route.php",
    "src/Mvc/Router.php",
    "src/Mvc/Rule.php",
    "src/Mvc/Session.php",
    "src/Mvc/View.php",
    "src/Mvc/WithoutToken.php",
];

/// A directory of fixtures, written for this run.
pub struct Fixture {
    /// Its path.
    pub directory: PathBuf,
}

impl Fixture {
    /// Writes the directory of that name, with every `@NAME@` replaced.
    pub fn unpack(lab: &Lab, name: &str, values: &[(&str, &str)]) -> Result<Self> {
        let fixture = Self { directory: lab.directory(&format!("site-{name}"))? };
        for (path, text) in FILES.iter().chain(outboard_resident::FILES).chain([&PIECES]) {
            let Some(path) = path.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')) else {
                continue;
            };
            let text = values.iter().fold((*text).to_owned(), |text, (key, value)| {
                text.replace(&format!("@{key}@"), value)
            });
            fixture.add(path, &text)?;
        }
        // Worker mode needs no files: the script handles all paths.
        fixture.make("public")?;
        Ok(fixture)
    }

    /// The Laravel application of the examples, which takes a snapshot in classic mode.
    pub fn laravel(lab: &Lab) -> Result<Self> {
        let fixture = Self { directory: lab.directory("site-laravel")? };
        LARAVEL.iter().try_for_each(|(path, text)| fixture.add(path, text))?;
        for path in [
            "bootstrap/cache",
            "storage/framework/sessions",
            "storage/framework/views",
            "storage/logs",
        ] {
            fixture.writable(path)?;
        }
        Ok(fixture)
    }

    /// Adds the Composer package's MVC, in the directory `php`.
    pub fn add_package(&self) -> Result<()> {
        PACKAGE.iter().try_for_each(|(path, text)| self.add(&format!("php/{path}"), text))
    }

    /// The directory that stacks serve.
    pub fn public(&self) -> PathBuf {
        self.directory.join("public")
    }

    /// The path of a file.
    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// Adds a file that the experiment generates.
    pub fn add(&self, path: &str, text: &str) -> Result<()> {
        let file = self.directory.join(path);
        if let Some(parent) = Path::new(path).parent() {
            self.make(parent)?;
        }
        write(&file, text)?;
        date_back(&file)
    }

    /// Creates a directory that PHP may write to, whichever user it runs as.
    pub fn writable(&self, path: &str) -> Result<PathBuf> {
        let directory = self.make(path)?;
        std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o777))
            .context(|| format!("open {}", directory.display()))?;
        Ok(directory)
    }

    fn make(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let directory = self.directory.join(path);
        std::fs::create_dir_all(&directory).context(|| format!("make {}", directory.display()))?;
        Ok(directory)
    }
}
