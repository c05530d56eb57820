//! The PHP of the experiments: what stands in the crate's `site` folder, put where a stack can
//! serve it.
//!
//! The files are part of the binary, so that it runs from anywhere. In each, `@NAME@` is replaced
//! by what the experiment gives for it: an address, a socket. Invariant: the files are dated an
//! hour back, as [`crate::site`] says why.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Doing, Result};
use crate::lab::{Lab, write};
use crate::site::date_back;

/// A file of the crate's `site` folder.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../site/", $path)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
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
    "fork/heavy.php",
    "fork/public/index.php",
    "framework/modules/demo/controller/index.php",
    "framework/mvc.php",
    "framework/public/index.php",
    "framework/worker.php",
    "mixed/worker.php",
    "symfony/app.php",
    "symfony/fork.php",
    "symfony/public/index.php",
    "symfony/src/Kernel.php",
    "symfony/src/Page.php",
    "symfony/templates/page.html.twig",
    "symfony/worker.php",
    "wordpress/fork.php",
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

/// What an application of the package's MVC loads.
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

/// A folder of fixtures, unpacked for this run.
pub struct Fixture {
    /// Where it is.
    pub folder: PathBuf,
}

impl Fixture {
    /// Unpacks the folder of that name, with every `@NAME@` replaced.
    pub fn unpack(lab: &Lab, name: &str, values: &[(&str, &str)]) -> Result<Self> {
        let fixture = Self { folder: lab.folder(&format!("site-{name}"))? };
        for (path, text) in FILES {
            let Some(path) = path.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')) else {
                continue;
            };
            let text = values.iter().fold((*text).to_owned(), |text, (key, value)| {
                text.replace(&format!("@{key}@"), value)
            });
            fixture.add(path, &text)?;
        }
        // Worker mode has no file for any path: all of them are the script's.
        fixture.make("public")?;
        Ok(fixture)
    }

    /// Adds the Composer package's MVC, in the folder `php`.
    pub fn add_package(&self) -> Result<()> {
        PACKAGE.iter().try_for_each(|(path, text)| self.add(&format!("php/{path}"), text))
    }

    /// The folder that stacks serve.
    pub fn public(&self) -> PathBuf {
        self.folder.join("public")
    }

    /// Where a file is.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Adds a file that is made by the experiment.
    pub fn add(&self, path: &str, text: &str) -> Result<()> {
        let file = self.folder.join(path);
        if let Some(parent) = Path::new(path).parent() {
            self.make(parent)?;
        }
        write(&file, text)?;
        date_back(&file)
    }

    /// Makes a folder that PHP may write into, whichever user it runs as.
    pub fn writable(&self, path: &str) -> Result<PathBuf> {
        let folder = self.make(path)?;
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777))
            .doing(|| format!("open {}", folder.display()))?;
        Ok(folder)
    }

    fn make(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let folder = self.folder.join(path);
        std::fs::create_dir_all(&folder).doing(|| format!("make {}", folder.display()))?;
        Ok(folder)
    }
}
