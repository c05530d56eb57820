//! [`FilePart`]: a file of the app as a part of a page.
//!
//! Owned by [`super::part`]. Invariants: a small file that is in memory is there at once; the event loop
//! waits for no disk, and copies no large file from one.

use super::failure::Failure;
use crate::app::App;
use crate::cold_files;
use outboard_buffer::Held;
use outboard_log::Reason;
use outboard_reactor::{current_task, now_ms, on_disk_thread, spawn, wake};
use outboard_static_files::{Content, Lookup};
use rustix::io::{Errno, fcntl_dupfd_cloexec, pread};
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Largest part that is in memory completely: a file, or an output that has a replacement.
pub(super) const WHOLE_MAX_BYTES: usize = 16 << 20;

/// Its bytes and their memory account.
type Read = Result<(Vec<u8>, Held), Failure>;

/// See the module.
#[derive(Debug)]
pub(super) struct FilePart(Rc<RefCell<Option<Read>>>);

impl FilePart {
    /// Begins to read a file below the root. The current task is woken when it has been read.
    pub(super) fn start(app: &Rc<App>, path: &str) -> Self {
        let read = Rc::new(RefCell::new(None));
        if let Ok(found) = app.files.lookup_in_memory(path.as_bytes(), now_ms())
            && let Some(in_memory) = in_memory(app, path, &found.followed().0)
        {
            read.replace(Some(in_memory));
            return Self(read);
        }
        let (app, path) = (app.clone(), path.to_owned());
        let (task, result) = (current_task(), Rc::downgrade(&read));
        spawn(async move {
            let found = cold_files::lookup(&app.files, path.as_bytes()).await;
            let done = match in_memory(&app, &path, &found) {
                Some(read) => read,
                None => from_disk(&app, &path, found).await,
            };
            if let Some(read) = result.upgrade() {
                read.replace(Some(done));
                wake(task);
            }
        });
        Self(read)
    }

    /// Moves its bytes to `out`, once it has been read.
    pub(super) fn try_take(&mut self, out: &mut Vec<u8>) -> Result<bool, Failure> {
        let Some(read) = self.0.take() else { return Ok(false) };
        let (mut bytes, _held) = read?;
        out.append(&mut bytes);
        Ok(true)
    }
}

/// The part, unless it has to be read from a disk.
fn in_memory(app: &App, path: &str, found: &Lookup) -> Option<Read> {
    let (Lookup::File(entry) | Lookup::Private(entry) | Lookup::Restricted(entry)) = found else {
        return Some(Err(failed(path, "the file does not exist or is not served")));
    };
    let plain = entry.plain();
    if plain.size() > WHOLE_MAX_BYTES as u64 {
        return Some(Err(failed(path, "it is larger than 16 MiB")));
    }
    let Content::Memory(bytes) = plain.content() else { return None };
    let held = app.memory.responses.try_hold(bytes.len()).ok_or_else(Failure::no_memory);
    Some(held.map(|held| (bytes.to_vec(), held)))
}

async fn from_disk(app: &App, path: &str, found: Lookup) -> Read {
    let (Lookup::File(entry) | Lookup::Private(entry) | Lookup::Restricted(entry)) = found else {
        return Err(failed(path, "the file does not exist or is not served"));
    };
    let size = entry.plain().size() as usize;
    let file = entry.fd().map(|file| fcntl_dupfd_cloexec(&**file, 0));
    let file =
        file.unwrap_or(Err(Errno::BADF)).map_err(|error| failed(path, &error.to_string()))?;
    let held = app.memory.responses.try_hold(size).ok_or_else(Failure::no_memory)?;
    let read = on_disk_thread(move || read_whole(&file, size)).await;
    match read.map_err(|error| failed(path, &error.to_string()))? {
        Some(bytes) => Ok((bytes, held)),
        None => Err(failed(path, "it was truncated while it was read")),
    }
}

/// `None` if the file is shorter.
fn read_whole(file: &OwnedFd, size: usize) -> Result<Option<Vec<u8>>, Errno> {
    let mut bytes = vec![0; size];
    let mut filled = 0;
    while filled < bytes.len() {
        match pread(file, &mut bytes[filled..], filled as u64) {
            Ok(0) => return Ok(None),
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(bytes))
}

fn failed(path: &str, why: &str) -> Failure {
    Failure::new(Reason::PartFailed, format!("{path}: {why}"))
}

#[cfg(test)]
mod tests;
