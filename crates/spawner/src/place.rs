//! Opening a log so that nobody leads the server elsewhere.
//!
//! Called by the gateway for every log, and by the spawner for those that the gateway's user cannot
//! open. Invariant: a symbolic link is followed only where nobody but root and the server's own user
//! could have put it; elsewhere a path with a link in it is an error.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// As a web server's logs are: others do not see who visits.
const MODE: u32 = 0o640;

/// Opens a file that is appended to, and makes it when it is not there.
///
/// # Errors
/// What opening it reports; `ELOOP` for a link that somebody else may have put there.
pub fn open_log(path: &Path) -> io::Result<File> {
    if is_ours(path)? {
        return OpenOptions::new().append(true).create(true).mode(MODE).open(path);
    }
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    // O_NONBLOCK: a FIFO that nobody reads would be waited for.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let opened = openat2(CWD, path, flags, Mode::from_raw_mode(MODE), ResolveFlags::NO_SYMLINKS);
    let file = File::from(opened.map_err(|error| match error {
        rustix::io::Errno::LOOP => io::Error::new(
            io::ErrorKind::InvalidInput,
            "there is a symbolic link in its path, and others may change a folder of it",
        ),
        error => error.into(),
    })?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is no regular file, and others may change a folder of its path"))
}

/// Whether all folders on the way, as written and as they are, belong to root or to this process's
/// user, and nobody else may write to them. In one with the sticky bit others may not touch what
/// is there, but they may have put a name there before us.
fn is_ours(path: &Path) -> io::Result<bool> {
    let written = path.parent().unwrap_or(Path::new("/"));
    let real = written.canonicalize()?;
    let own = geteuid().as_raw();
    for folder in real.ancestors().chain(written.ancestors()) {
        let found = folder.symlink_metadata()?;
        let is_last = folder == real || folder == written;
        let is_sticky = found.mode() & 0o1000 != 0 && !is_last;
        let is_closed = found.is_symlink() || found.mode() & 0o022 == 0 || is_sticky;
        if !is_closed || (found.uid() != 0 && found.uid() != own) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    fn folder(name: &str, mode: u32) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("outboard-place-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_link_leads_nowhere_where_others_may_have_put_it() {
        for (mode, is_followed) in [(0o755, true), (0o1777, false), (0o777, false)] {
            let folder = folder(&format!("{mode:o}"), mode);
            let (log, link, target) =
                (folder.join("log"), folder.join("link"), folder.join("target"));
            open_log(&log).unwrap();
            symlink(&target, &link).unwrap();
            assert_eq!(open_log(&link).is_ok(), is_followed, "{mode:o}");
            assert_eq!(target.exists(), is_followed, "{mode:o}");
            // A folder on the way is a link.
            symlink(&folder, folder.join("way")).unwrap();
            let by_way = folder.join("way").join("log");
            assert_eq!(open_log(&by_way).is_ok(), is_followed, "{mode:o}");
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn what_is_no_file_is_refused_where_others_may_have_put_it() {
        let folder = folder("kind", 0o1777);
        std::fs::create_dir(folder.join("log")).unwrap();
        assert!(open_log(&folder.join("log")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(open_log(Path::new("/dev/null")).is_ok());
    }
}
