//! [`Storage`]: accounts, keys and certificates in a directory.
//!
//! Used by the manager. Invariants: only this user can read it (directories 0700, files 0600); a file is
//! complete, whenever the process or the machine stops, because it is written under another name, synced and
//! renamed; certificate and key are one file, so that they match; a name is ordered by one process at a
//! time, which holds a lock that the kernel releases with the process.

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Larger files are not read: none of these is.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    directory: PathBuf,
}

/// The right to order a certificate for a name, until it is dropped.
#[derive(Debug)]
pub(crate) struct NameLock(#[expect(dead_code, reason = "the kernel's lock ends with it")] File);

impl Storage {
    /// Opens the directory, and creates it if it is missing.
    ///
    /// # Errors
    /// The directory that cannot be used.
    pub(crate) fn open(directory: &Path) -> Result<Self, String> {
        let storage = Self { directory: directory.to_owned() };
        for part in PARTS {
            let path = directory.join(part);
            DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| {
                format!("cannot create the directory of certificates {}: {error}", path.display())
            })?;
        }
        Ok(storage)
    }

    /// The certificate chain and key of a name.
    pub(crate) fn certificate(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        read(&self.of_name(name, "pem"))
    }

    /// Stores the certificate chain and key of a name.
    pub(crate) fn set_certificate(&self, name: &str, pem: &str) -> Result<(), String> {
        write(&self.of_name(name, "pem"), pem.as_bytes())
    }

    /// The record of a name, or an empty one.
    pub(crate) fn record<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, String> {
        read_json(&self.of_name(name, "json")).map(Option::unwrap_or_default)
    }

    /// Stores the record of a name.
    pub(crate) fn set_record(&self, name: &str, record: &impl Serialize) -> Result<(), String> {
        write_json(&self.of_name(name, "json"), record)
    }

    /// What is stored about an authority.
    pub(crate) fn authority<T: DeserializeOwned>(&self, url: &str) -> Result<Option<T>, String> {
        read_json(&self.of_authority(url))
    }

    /// Stores what is known about an authority.
    pub(crate) fn set_authority(&self, url: &str, state: &impl Serialize) -> Result<(), String> {
        write_json(&self.of_authority(url), state)
    }

    /// A file of the local authority.
    pub(crate) fn local(&self, file: &str) -> PathBuf {
        self.directory.join("local").join(file)
    }

    /// The name of this directory among those of other gateways.
    pub(crate) fn node(
        &self,
        new: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        let path = self.directory.join("accounts/node");
        if let Some(known) = read(&path)? {
            return Ok(String::from_utf8_lossy(&known).into_owned());
        }
        let node = new()?;
        write(&path, node.as_bytes())?;
        Ok(node)
    }

    /// Names that have a certificate here.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.join("names")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let name = file.strip_suffix(".pem")?;
            Some(
                name.strip_prefix("_.")
                    .map_or_else(|| name.to_owned(), |above| format!("*.{above}")),
            )
        });
        names.collect()
    }

    /// Takes the lock of a name; `None` while another process has it.
    pub(crate) fn lock(&self, name: &str) -> Result<Option<NameLock>, String> {
        let path = self.of_name(name, "lock");
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(NameLock(file))),
            Err(error) if error == rustix::io::Errno::WOULDBLOCK => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    fn of_name(&self, name: &str, ending: &str) -> PathBuf {
        let file = match name.strip_prefix("*.") {
            Some(above) => format!("_.{above}.{ending}"),
            None => format!("{name}.{ending}"),
        };
        self.directory.join("names").join(file)
    }

    fn of_authority(&self, url: &str) -> PathBuf {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = url.trim_start_matches("https://").chars().map(safe).collect();
        self.directory.join("accounts").join(format!("{name}.json"))
    }
}

/// Reads a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    let mut content = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut content).map_err(failed)?;
    Ok(Some(content))
}

/// Replaces a file in one step, on the disk too.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    let replace = || {
        let new = path.with_added_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
    };
    replace().map_err(|error: io::Error| format!("{}: {error}", path.display()))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let Some(content) = read(path)? else { return Ok(None) };
    let parsed = serde_json::from_slice(&content);
    parsed.map(Some).map_err(|error| format!("{}: {error}", path.display()))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    write(path, &text)
}

/// The directory of certificates if none is configured: `$STATE_DIRECTORY/certificates` of a service
/// (systemd.exec(5)), `/var/lib/outboard/certificates` for root, otherwise `outboard/certificates` in
/// `$XDG_DATA_HOME` or `~/.local/share`; `None` for a user without a home directory.
pub fn default_directory() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(service) = variable("STATE_DIRECTORY") {
        let first = service.to_string_lossy().split(':').next().map(PathBuf::from);
        return first.map(|directory| directory.join("certificates"));
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/outboard/certificates"));
    }
    let own = variable("XDG_DATA_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(variable("HOME")?).join(".local/share"));
    Some(own.or_else(home)?.join("outboard/certificates"))
}

/// The directories in the directory of certificates.
pub const PARTS: [&str; 3] = ["accounts", "names", "local"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_this_user_can_read_what_is_stored() {
        let directory = std::env::temp_dir().join(format!("certificates-{}", std::process::id()));
        let storage = Storage::open(&directory).unwrap();
        assert_eq!(storage.certificate("*.a.test"), Ok(None));
        storage.set_certificate("*.a.test", "one").unwrap();
        storage.set_certificate("*.a.test", "two").unwrap();
        assert_eq!(storage.certificate("*.a.test"), Ok(Some(b"two".to_vec())));
        assert_eq!(storage.names(), ["*.a.test"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory.join("names")), 0o700);
        assert_eq!(mode(&directory.join("names/_.a.test.pem")), 0o600);
        let held = storage.lock("*.a.test").unwrap();
        assert!(held.is_some() && storage.lock("*.a.test").unwrap().is_none());
        drop(held);
        assert!(storage.lock("*.a.test").unwrap().is_some());
        fs::remove_dir_all(&directory).unwrap();
    }
}
