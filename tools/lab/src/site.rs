//! The document root of the small experiments: one-line scripts, and files of 1 KiB, 30 KB and 1 MB.
//!
//! Written once per run; every stack serves the same directory. Invariant: the files are dated an
//! hour back, since opcache does not cache what changed in the last two seconds
//! (`opcache.file_update_protection`).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{Result, ResultExt};
use crate::lab::Lab;
use crate::system::write;

/// The smallest script: a response of two bytes.
pub const HELLO: &str = "/hello.php";

/// A script that takes 5 ms and records its start and end.
pub const TRACED: &str = "/traced.php";

/// A static file of 1,024 bytes.
pub const KIBIBYTE: &str = "/kibibyte.txt";

/// A static file of 30,000 bytes, such as a picture of a page.
pub const OBJECT: &str = "/object.txt";

/// A static file of 1,000,000 bytes.
pub const MEGABYTE: &str = "/megabyte.txt";

/// The directory that all stacks of the small experiments serve.
pub struct Site {
    /// The document root.
    pub root: PathBuf,
    /// Where [`TRACED`] writes: one file per PHP process, named by its pid, with a line `+ID` when
    /// a request starts and `-ID` when the script has ended.
    pub trace: PathBuf,
}

impl Site {
    /// Writes the files.
    pub fn write(lab: &Lab) -> Result<Self> {
        let site = Self { root: lab.directory("site")?, trace: lab.directory("trace")? };
        // The PHP processes of some stacks run as another user.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&site.trace, open)
            .context(|| "open the directory of trace".into())?;
        let traced = format!(
            "<?php $id = $_GET['id']; $log = '{}/' . getmypid();\n\
             file_put_contents($log, \"+$id\\n\", FILE_APPEND);\n\
             usleep(5000);\n\
             file_put_contents($log, \"-$id\\n\", FILE_APPEND);\n\
             echo $id;\n",
            site.trace.display()
        );
        site.add(HELLO, b"<?php echo 'ok';")?;
        // A stack counts as started once PHP serves its front page.
        site.add("/index.php", b"<?php echo 'ok';")?;
        site.add(TRACED, traced.as_bytes())?;
        site.add(KIBIBYTE, &b"0123456789abcdef".repeat(64))?;
        site.add(OBJECT, &b"0123456789abcdef".repeat(1_875))?;
        site.add(MEGABYTE, &b"0123456789abcdef".repeat(62_500))?;
        Ok(site)
    }

    fn add(&self, path: &str, content: &[u8]) -> Result<()> {
        let file = self.root.join(path.trim_start_matches('/'));
        write(&file, content)?;
        date_back(&file)
    }
}

/// Sets a file's modification time an hour back.
pub(crate) fn date_back(file: &Path) -> Result<()> {
    let then = SystemTime::now() - Duration::from_secs(3600);
    File::options()
        .append(true)
        .open(file)
        .and_then(|file| file.set_modified(then))
        .context(|| format!("date {} back", file.display()))
}
