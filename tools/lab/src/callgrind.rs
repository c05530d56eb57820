//! [`Callgrind`]: counts the instructions that the processes of a stack execute in user space.
//!
//! Used by [`crate::instructions`]; [`crate::group::Group`] starts programs with it. The count depends neither
//! on the speed of the machine nor on what else runs on it, but has nothing of the kernel's work.
//! Invariant: it counts the programs that a group starts and their forks, not what they execute.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result, ResultExt};
use crate::system;

/// A way to start programs, and the directory of their counts.
#[derive(Debug, Clone)]
pub struct Callgrind {
    valgrind: PathBuf,
    directory: PathBuf,
}

impl Callgrind {
    /// Counts into files of this directory, which processes of any user may write to.
    pub fn new(directory: PathBuf) -> Result<Self> {
        let valgrind = std::env::var_os("VALGRIND").unwrap_or_else(|| "valgrind".into());
        let context = || format!("make {}", directory.display());
        std::fs::create_dir_all(&directory).context(context)?;
        std::fs::set_permissions(&directory, Permissions::from_mode(0o777)).context(context)?;
        Ok(Self { valgrind: valgrind.into(), directory })
    }

    /// Whether valgrind is there.
    ///
    /// # Errors
    /// It is missing, or too old for Outboard.
    pub fn check(&self) -> Result<()> {
        let who = self.valgrind.display().to_string();
        let Ok(output) = Command::new(&self.valgrind).arg("--version").output() else {
            return Err(Error::MissingProgram { program: who, package: "valgrind" });
        };
        let printed = String::from_utf8_lossy(&output.stdout);
        if parse_version(&printed) >= Some(OLDEST) {
            return Ok(());
        }
        let what = format!(
            "is {:?}, but {}.{} or later is needed, as in Debian 13; the environment variable VALGRIND can \
             name another one",
            printed.trim(),
            OLDEST.0,
            OLDEST.1
        );
        Err(Error::Unexpected { who, what })
    }

    /// The command that counts the program's instructions.
    pub fn wrap(&self, program: &Command) -> Command {
        let options = self.options();
        let options = options.iter().map(OsStr::new);
        let launcher: Vec<&OsStr> =
            std::iter::once(self.valgrind.as_os_str()).chain(options).collect();
        system::started_by(&launcher, program)
    }

    /// The beginning of a shell command that counts the rest of it.
    pub fn prefix(&self) -> String {
        format!("{} {} ", self.valgrind.display(), self.options().join(" "))
    }

    fn options(&self) -> [String; 3] {
        let file = format!("--callgrind-out-file={}/%p", self.directory.display());
        ["-q".to_owned(), "--tool=callgrind".to_owned(), file]
    }

    /// Permits processes that have become another user since their start to write their counts.
    pub fn permit_writing(&self) -> Result<()> {
        for path in self.files()? {
            std::fs::set_permissions(&path, Permissions::from_mode(0o666))
                .context(|| format!("change the mode of {}", path.display()))?;
        }
        Ok(())
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(&self.directory);
        let paths = entries.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        paths.context(|| format!("read {}", self.directory.display()))
    }

    /// The instructions of all processes that have ended since the last call.
    pub fn take_total(&self) -> Result<u64> {
        let mut total = 0;
        for path in self.files()? {
            total += total_of(&path)?;
            std::fs::remove_file(&path).context(|| format!("remove {}", path.display()))?;
        }
        if total == 0 {
            let who = self.valgrind.display().to_string();
            return Err(Error::Unexpected {
                who,
                what: "no counts: name the program itself, not a script that executes it".into(),
            });
        }
        Ok(total)
    }
}

/// Older releases do not know openat2(2), without which Outboard serves no files.
const OLDEST: (u32, u32) = (3, 22);

/// The first two numbers of `valgrind-3.24.0`.
fn parse_version(printed: &str) -> Option<(u32, u32)> {
    let mut numbers = printed.trim().strip_prefix("valgrind-")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The sum in a file, which is empty if the process was killed.
fn total_of(path: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(path).context(|| format!("read {}", path.display()))?;
    Ok(parse_total(&text).unwrap_or(0))
}

/// The line `totals: N` or, in older formats, `summary: N` (callgrind-format.txt).
fn parse_total(text: &str) -> Option<u64> {
    let line = |name| text.lines().rev().find_map(|line: &str| line.strip_prefix(name));
    line("totals: ").or_else(|| line("summary: "))?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(parse_version("valgrind-3.24.0\n"), Some((3, 24)));
        assert!(parse_version("valgrind-3.9.0") < Some(OLDEST));
        assert!(parse_version("valgrind-4.0.0.GIT") > Some(OLDEST));
        assert_eq!(parse_version("zsh: no such program"), None);
    }

    #[test]
    fn the_total_is_the_first_number_of_its_line() {
        let file = "version: 1\nevents: Ir\nsummary: 12\n\nfn=(1) main\n0 5\n\ntotals: 34\n";
        assert_eq!(parse_total(file), Some(34));
        assert_eq!(parse_total("version: 1\nsummary: 12\n"), Some(12));
        assert_eq!(parse_total(""), None);
    }

    #[test]
    fn the_program_keeps_its_arguments_and_environment() {
        let directory = std::env::temp_dir().join(format!("callgrind-{}", std::process::id()));
        let callgrind = Callgrind::new(directory.clone()).unwrap();
        let mut program = Command::new("nginx");
        program.args(["-c", "a b"]).env("KEY", "value");
        let wrapped = callgrind.wrap(&program);
        let arguments: Vec<_> = wrapped.get_args().map(|a| a.to_string_lossy()).collect();
        assert_eq!(arguments[arguments.len() - 3..], ["nginx", "-c", "a b"]);
        assert!(wrapped.get_envs().any(|(key, value)| key == "KEY" && value.is_some()));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
