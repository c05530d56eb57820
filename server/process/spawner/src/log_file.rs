//! Opening of logs, protected against symbolic links.
//!
//! Used by the gateway for every log, and by the spawner for logs that the gateway's user cannot
//! open. Invariant: a symbolic link is followed only where no one but root and the server's own
//! user could have created it; elsewhere a path with a link is an error.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Other users cannot read access logs.
const MODE: u32 = 0o640;

/// Opens a file for appending, and creates it if it does not exist.
///
/// # Errors
/// Opening fails; an error names a link that another user may have created.
pub fn open_log(path: &Path) -> io::Result<File> {
    if is_ours(path)? {
        return OpenOptions::new().append(true).create(true).mode(MODE).open(path);
    }
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    // O_NONBLOCK: opening a FIFO without a reader would block.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let opened = openat2(CWD, path, flags, Mode::from_raw_mode(MODE), ResolveFlags::NO_SYMLINKS);
    let file = File::from(opened.map_err(|error| match error {
        rustix::io::Errno::LOOP => io::Error::new(
            io::ErrorKind::InvalidInput,
            "its path has a symbolic link, and other users may change a directory of it",
        ),
        error => error.into(),
    })?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(
        "it is not a regular file, and other users may change a directory of its path",
    ))
}

/// Whether all directories of the path, as written and resolved, belong to root or to the user of
/// this process, and no one else may write to them. In a directory with the sticky bit others
/// cannot replace an entry, but they may have created it.
fn is_ours(path: &Path) -> io::Result<bool> {
    let written = path.parent().unwrap_or(Path::new("/"));
    let real = written.canonicalize()?;
    let own = geteuid().as_raw();
    for directory in real.ancestors().chain(written.ancestors()) {
        let metadata = directory.symlink_metadata()?;
        let is_last = directory == real || directory == written;
        let is_sticky = metadata.mode() & 0o1000 != 0 && !is_last;
        let is_protected = metadata.is_symlink() || metadata.mode() & 0o022 == 0 || is_sticky;
        if !is_protected || (metadata.uid() != 0 && metadata.uid() != own) {
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

    fn directory(name: &str, mode: u32) -> PathBuf {
        let path = std::env::temp_dir().join(format!("outboard-log-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_link_in_a_shared_directory_is_not_followed() {
        for (mode, is_followed) in [(0o755, true), (0o1777, false), (0o777, false)] {
            let directory = directory(&format!("{mode:o}"), mode);
            let (log, link, target) =
                (directory.join("log"), directory.join("link"), directory.join("target"));
            open_log(&log).unwrap();
            symlink(&target, &link).unwrap();
            assert_eq!(open_log(&link).is_ok(), is_followed, "{mode:o}");
            assert_eq!(target.exists(), is_followed, "{mode:o}");
            // A directory of the path is a link.
            symlink(&directory, directory.join("way")).unwrap();
            let by_way = directory.join("way").join("log");
            assert_eq!(open_log(&by_way).is_ok(), is_followed, "{mode:o}");
            std::fs::remove_dir_all(&directory).unwrap();
        }
    }

    #[test]
    fn only_a_regular_file_in_a_shared_directory_is_opened() {
        let directory = directory("kind", 0o1777);
        std::fs::create_dir(directory.join("log")).unwrap();
        assert!(open_log(&directory.join("log")).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(open_log(Path::new("/dev/null")).is_ok());
    }

    #[test]
    fn a_log_is_appended_to_and_not_readable_by_others() {
        let directory = directory("append", 0o755);
        let log = directory.join("log");
        for line in ["first\n", "second\n"] {
            std::io::Write::write_all(&mut open_log(&log).unwrap(), line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "first\nsecond\n");
        assert_eq!(std::fs::metadata(&log).unwrap().mode() & 0o027, 0);
        let missing = open_log(&directory.join("none/log")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn an_error_explains_why_a_link_is_not_followed() {
        let directory = directory("why", 0o777);
        symlink("/dev/null", directory.join("log")).unwrap();
        let error = open_log(&directory.join("log")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(
            error.to_string(),
            "its path has a symbolic link, and other users may change a directory of it"
        );
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_pipe_of_another_user_does_not_block_the_server() {
        let directory = directory("pipe", 0o777);
        let pipe = directory.join("log");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let without_reader = open_log(&pipe).unwrap_err();
        assert_eq!(without_reader.raw_os_error(), Some(rustix::io::Errno::NXIO.raw_os_error()));
        let _reader = OpenOptions::new().read(true).custom_flags(0o4000).open(&pipe).unwrap();
        let with_reader = open_log(&pipe).unwrap_err().to_string();
        assert!(with_reader.starts_with("it is not a regular file"), "{with_reader}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
