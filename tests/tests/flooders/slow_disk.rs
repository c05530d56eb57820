//! A disk that is slow for the gateway: large and small files that are not in memory are read from it, and
//! the other app, whose files are, waits for none of them.
//!
//! The kernel limits the disk for the gateway's control group, which needs root and the `blkio`
//! controller; elsewhere the test is skipped.

use super::*;
use rustix::fs::{Advice, fadvise, major, minor};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

const FILES: usize = 16;
const FILE_BYTES: usize = 1 << 20;
/// What the gateway may read in a second.
const BYTES_PER_SECOND: usize = 1 << 20;

/// A control group with a slow disk. Processes that are still in it when it is dropped go to the root.
struct SlowDisk(PathBuf);

impl SlowDisk {
    /// The disk of this folder, slow for a process; `None` where that is not possible.
    fn of(folder: &Path, pid: u32) -> Option<SlowDisk> {
        let device = std::fs::metadata(folder).ok()?.dev();
        let name = format!("outboard-flooders-{pid}");
        let (hierarchy, file) = [
            ("/sys/fs/cgroup/blkio", "blkio.throttle.read_bps_device"),
            ("/sys/fs/cgroup", "io.max"),
        ]
        .into_iter()
        .find(|(hierarchy, _)| Path::new(hierarchy).join("cgroup.procs").exists())?;
        let group = Path::new(hierarchy).join(name);
        std::fs::create_dir(&group).ok()?;
        let group = SlowDisk(group);
        let device = format!("{}:{}", major(device), minor(device));
        let limit = match file {
            "io.max" => format!("{device} rbps={BYTES_PER_SECOND}"),
            _ => format!("{device} {BYTES_PER_SECOND}"),
        };
        std::fs::write(group.0.join(file), limit).ok()?;
        std::fs::write(group.0.join("cgroup.procs"), pid.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let processes = std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        let root = self.0.with_file_name("cgroup.procs");
        for process in processes.lines() {
            let _ = std::fs::write(&root, process);
        }
        // The kernel frees a group some time after its last process.
        eventually_within(RECOVERED_WITHIN, "the group is removed", || {
            std::fs::remove_dir(&self.0).map_err(|error| format!("{error:?}"))
        });
    }
}

/// Removes a file from memory, unless the test is over.
fn evict(path: &Path) {
    let Ok(file) = std::fs::File::open(path) else { return };
    file.sync_all().expect("it is written");
    fadvise(&file, 0, None, Advice::DontNeed).expect("it is a file");
}

#[test]
fn large_files_on_a_slow_disk() {
    let docroot = docroot();
    let name = |number: usize| format!("cold-{number}.bin");
    let content: Vec<u8> = (0..FILE_BYTES).map(|at| (at * 31 % 251) as u8).collect();
    (0..FILES).for_each(|number| docroot.put(&name(number), &content));
    let folder = docroot.path().to_owned();
    let text = text("listen = \"127.0.0.1:0\"\n", "[app.site.pool]\nmin = 1\nmax = 1");
    let site = Configured::start(docroot, &text);
    let Some(_disk) = SlowDisk::of(&folder, site.child().pid()) else {
        return println!("skipped: no disk can be made slow here");
    };
    is_borne("large files, slow disk", site, |site| {
        let (address, folder) = (site.address(), folder.clone());
        let next = std::sync::atomic::AtomicUsize::new(0);
        Flood::of_clients(8, move || {
            let name = name(next.fetch_add(1, Ordering::Relaxed) % FILES);
            evict(&folder.join(&name));
            let request = Request::get(&format!("/{name}")).to_bytes("site");
            if let Some(stream) = unread(address, &request) {
                drain(stream, DEADLINE / 4);
            }
        })
    });
}

/// Each is read when it is opened.
#[test]
fn small_files_on_a_slow_disk() {
    const SMALL_FILES: usize = 128;
    const SMALL_FILE_BYTES: usize = 32 << 10;
    let docroot = docroot();
    let name = |number: usize| format!("cold-{number}.txt");
    let content = "x".repeat(SMALL_FILE_BYTES);
    (0..SMALL_FILES).for_each(|number| docroot.put(&name(number), &content));
    let folder = docroot.path().to_owned();
    let text = text("listen = \"127.0.0.1:0\"\n", "[app.site.pool]\nmin = 1\nmax = 1");
    let site = Configured::start(docroot, &text);
    let Some(_disk) = SlowDisk::of(&folder, site.child().pid()) else {
        return println!("skipped: no disk can be made slow here");
    };
    is_borne("small files, slow disk", site, |site| {
        let (address, folder) = (site.address(), folder.clone());
        let next = std::sync::atomic::AtomicUsize::new(0);
        Flood::of_clients(8, move || {
            let name = name(next.fetch_add(1, Ordering::Relaxed) % SMALL_FILES);
            let path = folder.join(&name);
            // What has changed is read again.
            if let Ok(file) = std::fs::File::options().append(true).open(&path) {
                let _ = file.set_modified(std::time::SystemTime::now());
            }
            evict(&path);
            let request = Request::get(&format!("/{name}")).header("Connection", "close");
            let request = request.to_bytes("site");
            if let Some(stream) = unread(address, &request) {
                drain(stream, DEADLINE / 4);
            }
        })
    });
}
