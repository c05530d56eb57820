//! The directory of one `outboard run`: an empty document root, the files of shared memory, the pipe
//! for commands of the program, the admin socket.

use rustix::fs::{CWD, FileType, Gid, Mode, Uid, chown, mkdir, mknodat};
use std::io;
use std::path::{Path, PathBuf};

/// Removed on drop.
#[derive(Debug)]
pub struct PrivateDir {
    dir: PathBuf,
}

/// How many names are tried.
const ATTEMPTS: u32 = 100;

impl PrivateDir {
    /// Creates it, for a server that becomes the user `gateway` and a program of another user and
    /// group, if they are others than this process.
    ///
    /// # Errors
    /// The directory or a file in it cannot be created.
    pub fn create(program: Option<(u32, u32)>, gateway: Option<u32>) -> io::Result<Self> {
        let created = Self { dir: Self::new_dir(&std::env::temp_dir())? };
        let both = program.and_then(|(_, group)| Some((gateway?, group)));
        create_dir(&created.path("root"), 0o755, both)?;
        // Who owns a directory can remove what another has put there.
        create_dir(&created.path("memory"), 0o770, both)?;
        let pipe = created.path("control");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        give(&pipe, program)?;
        give(&created.dir, both)?;
        Ok(created)
    }

    /// A new directory; an existing one of another user is not used.
    fn new_dir(parent: &Path) -> io::Result<PathBuf> {
        for attempt in 0..ATTEMPTS {
            let dir = parent.join(format!("outboard-run-{}-{attempt}", std::process::id()));
            match create_dir(&dir, 0o711, None) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| dir),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

fn give(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    let Some((uid, gid)) = owner else { return Ok(()) };
    Ok(chown(path, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
}

fn create_dir(path: &Path, mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    mkdir(path, Mode::from_raw_mode(0o700))?;
    rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
    give(path, owner)
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // Its name stays where the server, no longer root, may not remove it from: in /tmp.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
