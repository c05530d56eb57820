//! What happens to the files of directories, as the kernel reports it (inotify(7)).
//!
//! Used by development mode, for whole trees, and by pools, for the files that a start has read; each has an instance
//! of its own. Invariant: a read never blocks, and takes no more events than the kernel queues, so that a script that
//! writes files all the time does not block a loop.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use rustix::fs::inotify::ReadFlags;

/// As many events as the kernel queues (max_queued_events in inotify(7)).
const EVENTS_MAX: usize = 16 * 1024;
/// More than an event with the longest name.
const BUFFER_BYTES: usize = 16 * 1024;

/// One event of a watched directory.
#[derive(Debug, Clone, Copy)]
pub struct DirectoryEvent<'a> {
    /// The number of the watch.
    pub watch: i32,
    /// The file in the directory; empty: the directory itself.
    pub name: &'a OsStr,
    /// What has happened.
    pub flags: ReadFlags,
}

/// How a read ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsRead {
    /// Whether the kernel has dropped events: anything may have changed.
    pub has_lost: bool,
    /// Whether no event is left for the next read.
    pub is_drained: bool,
}

/// A new instance, which watches nothing.
///
/// # Errors
/// `inotify_init1(2)` fails.
pub fn new_instance() -> rustix::io::Result<OwnedFd> {
    inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
}

/// Watches a directory for files that come, go and are written; returns the number of the watch.
///
/// # Errors
/// `inotify_add_watch(2)` fails.
pub fn watch(instance: impl AsFd, directory: &Path) -> rustix::io::Result<i32> {
    let flags = WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::ONLYDIR;
    inotify::add_watch(instance, directory, flags)
}

/// Passes the events since the last read to `visit`.
pub fn read(instance: impl AsFd, mut visit: impl FnMut(DirectoryEvent<'_>)) -> EventsRead {
    debug_assert!(
        fcntl_getfl(&instance).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)),
        "a read would block the loop"
    );
    let mut end = EventsRead { has_lost: false, is_drained: false };
    let mut space = [MaybeUninit::uninit(); BUFFER_BYTES];
    let mut reader = Reader::new(instance, &mut space);
    let mut count = 0;
    while count < EVENTS_MAX {
        match reader.next() {
            Ok(event) => {
                count += 1;
                end.has_lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                let name = event.file_name().map_or(&b""[..], |name| name.to_bytes());
                let name = OsStr::from_bytes(name);
                visit(DirectoryEvent { watch: event.wd(), name, flags: event.events() });
            }
            Err(Errno::INTR) => {}
            Err(_) => {
                end.is_drained = true;
                break;
            }
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_of_a_watched_directory_are_named() {
        let directory = std::env::temp_dir().join(format!("events-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let instance = new_instance().unwrap();
        let number = watch(&instance, &directory).unwrap();
        let mut seen = Vec::new();
        let mut names = || {
            let end = read(&instance, |event| {
                assert_eq!(event.watch, number);
                seen.push((event.name.to_owned(), event.flags.contains(ReadFlags::DELETE)));
            });
            assert_eq!(end, EventsRead { has_lost: false, is_drained: true });
            std::mem::take(&mut seen)
        };
        assert!(names().is_empty());
        fs::write(directory.join("one"), "text").unwrap();
        assert!(names().iter().all(|(name, is_gone)| name == "one" && !is_gone));
        fs::remove_dir_all(&directory).unwrap();
        assert!(names().contains(&("one".into(), true)));
    }

    #[test]
    fn a_file_is_not_watched_as_a_directory() {
        let file = std::env::current_exe().unwrap();
        assert_eq!(watch(new_instance().unwrap(), &file), Err(Errno::NOTDIR));
    }

    #[test]
    fn a_flood_of_events_is_read_in_parts_and_a_loss_is_reported() {
        let directory = std::env::temp_dir().join(format!("flood-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let queued = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let queued: usize = queued.trim().parse().unwrap();
        let instance = new_instance().unwrap();
        watch(&instance, &directory).unwrap();
        let [one, other] = ["one", "other"].map(|name| directory.join(name));
        fs::write(&one, "").unwrap();
        // Each rename is two events.
        for _ in 0..queued / 4 + 1 {
            fs::rename(&one, &other).unwrap();
            fs::rename(&other, &one).unwrap();
        }
        let (mut counts, mut has_lost) = (Vec::new(), false);
        loop {
            let mut count = 0;
            let end = read(&instance, |_| count += 1);
            assert!(count <= EVENTS_MAX);
            counts.push(count);
            has_lost |= end.has_lost;
            if end.is_drained {
                break;
            }
        }
        // The last one reports the loss.
        assert_eq!(counts.iter().sum::<usize>(), queued + 1);
        assert!(has_lost);
        fs::remove_dir_all(&directory).unwrap();
    }
}
