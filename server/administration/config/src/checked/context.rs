//! Shared state of validation: the source text, the disk and the collected errors.

use crate::diagnostic::{Diagnostic, Kind};
use crate::disk::{Disk, Found, reason};
use crate::places::{Places, Span};
use crate::scalar::{Fault, Network};
use crate::source::Source;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Networks by name.
pub(crate) type Networks = BTreeMap<String, Vec<Network>>;

/// What each section needs in addition to its own part of the file.
pub(crate) struct Context<'a> {
    pub(crate) source: &'a Source<'a>,
    pub(crate) places: &'a Places,
    pub(crate) disk: &'a dyn Disk,
    /// The configuration file, or the directory that is served without one; absolute.
    pub(crate) file: &'a Path,
    /// Base directory of relative paths; absolute.
    pub(crate) directory: &'a Path,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Networks by name.
    pub(crate) networks: Networks,
}

impl Context<'_> {
    /// Reports an error in the value of `path`.
    pub(crate) fn value(&mut self, path: &[&str], kind: Kind, fault: Fault) {
        self.report(path, self.places.value(path), kind, fault);
    }

    /// Reports an error at the key `path`.
    pub(crate) fn key(&mut self, path: &[&str], kind: Kind, fault: Fault) {
        self.report(path, self.places.key(path), kind, fault);
    }

    fn report(&mut self, path: &[&str], span: Option<Span>, kind: Kind, fault: Fault) {
        self.diagnostics.push(Diagnostic {
            kind,
            position: span.map(|span| self.source.position(span)),
            key: Some(path.join(".")),
            message: fault.message,
            hint: fault.hint,
        });
    }

    /// The line of a key, for messages about another place: " (line 3)", or " (conf.d/a.toml:3)" in
    /// an included file.
    pub(crate) fn line_of(&self, path: &[&str]) -> String {
        let Some(at) = self.places.key(path).map(|span| self.source.position(span)) else {
            return String::new();
        };
        match at.file {
            Some(file) => format!(" ({}:{})", file.display(), at.line),
            None => format!(" (line {})", at.line),
        }
    }

    /// The absolute path, without `.` and `..`.
    pub(crate) fn absolute(&self, written: &Path) -> PathBuf {
        let joined = self.directory.join(written);
        let parts: Vec<Component<'_>> = joined.components().collect();
        // `a/link/..` is not `a`: the part up to the last `..` is resolved on disk.
        match parts.iter().rposition(|part| *part == Component::ParentDir) {
            None => parts.iter().collect(),
            Some(at) => {
                let upper: PathBuf = parts[..=at].iter().collect();
                let upper = self.disk.canonical(&upper).unwrap_or(upper);
                upper.join(parts[at + 1..].iter().collect::<PathBuf>())
            }
        }
    }

    /// A directory that must exist and be readable.
    pub(crate) fn directory(&mut self, place: &[&str], written: &Path) -> PathBuf {
        let path = self.absolute(written);
        match self.disk.look(&path) {
            Ok(Found::Directory) => self.readable(place, &path, "directory"),
            Ok(_) => self.bad_path(place, format!("`{}` is not a directory", path.display()), None),
            Err(error) => self.missing(place, "directory", written, &path, &error),
        }
        path
    }

    /// A file that must exist and be readable.
    pub(crate) fn file(&mut self, place: &[&str], written: &Path) -> PathBuf {
        let path = self.absolute(written);
        self.look_for_file(place, written, &path);
        path
    }

    /// Checks that a file exists at `path`, which was written as `written`.
    pub(crate) fn look_for_file(&mut self, place: &[&str], written: &Path, path: &Path) {
        match self.disk.look(path) {
            Ok(Found::File { .. }) => self.readable(place, path, "file"),
            Ok(_) => self.bad_path(place, format!("`{}` is not a file", path.display()), None),
            Err(error) => self.missing(place, "file", written, path, &error),
        }
    }

    /// A file or directory that must exist; the server itself need not read it.
    pub(crate) fn existing(&mut self, place: &[&str], written: &Path) -> PathBuf {
        let path = self.absolute(written);
        if let Err(error) = self.disk.look(&path) {
            self.missing(place, "file or directory", written, &path, &error);
        }
        path
    }

    /// A program that can be started.
    pub(crate) fn program(&mut self, place: &[&str], written: &Path) -> PathBuf {
        let path = self.file(place, written);
        if let Ok(Found::File { executable: false }) = self.disk.look(&path) {
            let message = format!("`{}` is not executable", path.display());
            self.bad_path(place, message, Some(format!("chmod +x {}", path.display())));
        }
        path
    }

    /// A file that may be created in an existing directory.
    pub(crate) fn new_file(&mut self, place: &[&str], written: &Path) -> PathBuf {
        let path = self.absolute(written);
        let directory = path.parent().unwrap_or(Path::new("/"));
        match self.disk.look(directory) {
            Ok(Found::Directory) => {}
            Ok(_) => {
                self.bad_path(place, format!("`{}` is not a directory", directory.display()), None);
            }
            Err(error) => self.missing(place, "directory", written, directory, &error),
        }
        if matches!(self.disk.look(&path), Ok(Found::Directory)) {
            self.bad_path(place, format!("`{}` is a directory, not a file", path.display()), None);
        }
        path
    }

    fn readable(&mut self, place: &[&str], path: &Path, what: &str) {
        if let Err(error) = self.disk.readable(path) {
            let message =
                format!("the {what} `{}` cannot be read: {}", path.display(), reason(&error));
            self.bad_path(place, message, None);
        }
    }

    fn missing(
        &mut self,
        place: &[&str],
        what: &str,
        written: &Path,
        path: &Path,
        error: &std::io::Error,
    ) {
        let shown = path.display();
        if error.kind() != std::io::ErrorKind::NotFound {
            let message = format!("the {what} `{shown}` cannot be used: {}", reason(error));
            return self.bad_path(place, message, None);
        }
        let hint = on_windows(written).or_else(|| {
            (!written.is_absolute()).then(|| {
                format!(
                    "relative paths are resolved against the file's directory, `{}`",
                    self.directory.display()
                )
            })
        });
        self.bad_path(place, format!("there is no {what} `{shown}`"), hint);
    }

    fn bad_path(&mut self, place: &[&str], message: String, hint: Option<String>) {
        self.value(place, Kind::Path, Fault { message, hint });
    }
}

/// For a path of Windows: where WSL has it.
fn on_windows(written: &Path) -> Option<String> {
    let text = written.to_str()?;
    let (drive, rest) = text.split_once(':').filter(|(drive, _)| drive.len() == 1)?;
    let below = rest.replace('\\', "/");
    Some(format!(
        "this is a path of Windows; in WSL it is \"/mnt/{}{below}\"",
        drive.to_ascii_lowercase()
    ))
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use crate::checked::testing::site;
    use std::path::{Path, PathBuf};

    #[test]
    fn paths_are_absolute_and_without_dots() {
        let roots = site("sendfile.roots = [\"./a/./b\", \"/c/./d\"]\n").sendfile.roots;
        assert_eq!(roots, ["/srv/www/a/b", "/c/d"].map(PathBuf::from));
    }

    #[test]
    fn a_missing_path_is_reported_with_its_base() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let error = |root: &str| {
            let text = format!("[app.a]\nroot = \"{root}\"\n");
            Config::parse(&text, &directory.join("outboard.toml")).unwrap_err().to_string()
        };
        let relative = error("nowhere");
        assert!(relative.contains("there is no directory"), "{relative}");
        assert!(relative.contains("relative paths are resolved"), "{relative}");
        assert!(!error("/nowhere").contains("relative paths"));
        assert!(error("Cargo.toml").contains("is not a directory"));
    }
}
