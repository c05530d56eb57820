//! The sampler: reads the PHP stacks of running workers from outside, many times a second.
//!
//! `outboard profile` and the lab start `outboard-php sample`, which reads other processes of the
//! same program with process_vm_readv(2) and runs no PHP itself. Workers need no extension and do
//! not notice it.
//!
//! Invariant: addresses are derived from this program only if the other process has mapped the same
//! files, so that offsets within them are equal.
//!
//! Output: folded stacks, one per line, outermost frame first, and their counts:
//! `site;{main} index.php;App::run;strlen 42`. The innermost frame is `(waiting)` for a worker in a
//! system call, and `(engine)` for one that runs outside of PHP code.

use crate::sandbox::monitor;
use crate::{backtrace, engine, process};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// The argument that makes this program the sampler.
pub(crate) const COMMAND: &str = "sample";

/// How often zygotes are scanned for new workers.
const SCAN_INTERVAL: Duration = Duration::from_millis(500);

struct Arguments {
    hz: u32,
    duration: Duration,
    zygotes: Vec<i32>,
}

/// `outboard-php sample HZ SECONDS ZYGOTE_PID…`
pub(crate) fn run() -> io::Result<ExitCode> {
    let arguments = arguments().ok_or_else(|| {
        let usage = "usage: outboard-php sample HZ SECONDS ZYGOTE_PID...";
        io::Error::new(io::ErrorKind::InvalidInput, usage)
    })?;
    let stacks = sample(&arguments)?;
    let mut out = io::stdout().lock();
    for (stack, count) in stacks {
        writeln!(out, "{stack} {count}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn arguments() -> Option<Arguments> {
    let mut words = std::env::args().skip(2);
    let hz: u32 = words.next()?.parse().ok().filter(|hz| (1..=10_000).contains(hz))?;
    let seconds: f64 = words.next()?.parse().ok()?;
    let duration = Duration::try_from_secs_f64(seconds).ok()?;
    let zygotes = words.map(|word| word.parse().ok()).collect::<Option<Vec<i32>>>()?;
    (!zygotes.is_empty()).then_some(Arguments { hz, duration, zygotes })
}

fn sample(arguments: &Arguments) -> io::Result<BTreeMap<String, u64>> {
    let own = Root::own()?;
    let began = Instant::now();
    let mut stacks = BTreeMap::new();
    let mut workers = Vec::new();
    let mut next_look = began;
    for tick in 0_u32.. {
        let at = Duration::from_secs(1) * tick / arguments.hz;
        if at >= arguments.duration {
            break;
        }
        thread::sleep(at.saturating_sub(began.elapsed()));
        if Instant::now() >= next_look {
            workers = find_workers(&arguments.zygotes, &own)?;
            next_look = Instant::now() + SCAN_INTERVAL;
        }
        for worker in &workers {
            if let Some(stack) = worker.stack() {
                *stacks.entry(stack).or_default() += 1;
            }
        }
    }
    Ok(stacks)
}

/// A worker, and the address of its pointer to the innermost frame.
struct Worker {
    pid: i32,
    app: String,
    root: usize,
}

fn find_workers(zygotes: &[i32], own: &Root) -> io::Result<Vec<Worker>> {
    let mut workers = Vec::new();
    for &zygote in zygotes {
        // A zygote that has exited was drained; the new one is not sampled.
        let children = fs::read_to_string(format!("/proc/{zygote}/task/{zygote}/children"));
        // Only root may read the zygote's memory; a worker is a fork of it.
        let mut root = None;
        for pid in children.unwrap_or_default().split_whitespace() {
            let Ok(pid) = pid.parse() else { continue };
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if [process::ZYGOTE_NAME, monitor::NAME].contains(&name.trim()) {
                continue;
            }
            let root = match root {
                Some(root) => root,
                None => *root.insert(own.in_process(pid)?),
            };
            let app = name.trim().split('/').next().unwrap_or_default().to_owned();
            workers.push(Worker { pid, app, root });
        }
    }
    Ok(workers)
}

impl Worker {
    /// Its current folded stack; `None` if it is idle.
    fn stack(&self) -> Option<String> {
        let is_computing = backtrace::is_running(self.pid);
        let text = String::from_utf8_lossy(&backtrace::of(self.pid, None, self.root)).into_owned();
        let frames: Vec<String> = text.lines().filter_map(frame).collect();
        let state = match (is_computing, frames.is_empty()) {
            (false, true) => return None,
            (false, false) => Some("(waiting)"),
            (true, true) => Some("(engine)"),
            (true, false) => None,
        };
        let mut stack = self.app.clone();
        for word in frames.iter().rev().map(String::as_str).chain(state) {
            stack.push(';');
            stack.push_str(word);
        }
        Some(stack)
    }
}

/// Converts `#3 App::run() /srv/app.php:12` into a frame of a folded stack. A function has one
/// frame for all its lines; code without a function has that of its file.
fn frame(line: &str) -> Option<String> {
    let (_, rest) = line.strip_prefix('#')?.split_once(' ')?;
    let (name, place) = rest.split_once(' ').unwrap_or((rest, ""));
    let name = name.strip_suffix("()").unwrap_or(name);
    let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
    let is_nameless = name.contains('{') && !file.is_empty();
    let word = if is_nameless { format!("{name} {file}") } else { name.to_owned() };
    // Names must not contain the separators of frames and lines.
    Some(word.replace([';', '\n'], "?"))
}

/// The file that holds PHP's pointer to the innermost frame, and its offset.
struct Root {
    file: File,
    offset: usize,
}

/// A file of `/proc/PID/maps`, by device and inode: several files may have had one path.
#[derive(Clone, PartialEq, Eq)]
struct File {
    device: String,
    inode: String,
}

impl Root {
    fn own() -> io::Result<Self> {
        let address = engine::backtrace::root();
        let maps = fs::read_to_string("/proc/self/maps")?;
        // Variables without initial values follow the file's last mapping, in an anonymous one.
        let before = mappings(&maps).filter(|mapping| mapping.start <= address);
        let file = before.filter_map(|mapping| mapping.file).last();
        let file = file.ok_or_else(|| io::Error::other("PHP's globals are not in a file"))?;
        let base =
            base(&maps, &file).ok_or_else(|| io::Error::other("a file has no first mapping"))?;
        Ok(Self { offset: address - base, file })
    }

    /// The address in another process.
    fn in_process(&self, pid: i32) -> io::Result<usize> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|error| {
            let how = "sample as root, or set php.dumpable = true";
            io::Error::new(error.kind(), format!("worker {pid}: {error}: {how}"))
        })?;
        let other = || {
            let why = "runs another build of outboard-php or PHP than this one";
            io::Error::other(format!("worker {pid} {why}"))
        };
        Ok(base(&maps, &self.file).ok_or_else(other)? + self.offset)
    }
}

struct Mapping {
    start: usize,
    file: Option<File>,
}

/// The lines of proc_pid_maps(5): `start-end flags offset device inode path`.
fn mappings(maps: &str) -> impl Iterator<Item = Mapping> {
    maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let start = usize::from_str_radix(words.next()?.split('-').next()?, 16).ok()?;
        let (device, inode) = (words.nth(2)?.to_owned(), words.next()?.to_owned());
        let file = (inode != "0").then_some(File { device, inode });
        Some(Mapping { start, file })
    })
}

/// The start of a file's first mapping.
fn base(maps: &str, file: &File) -> Option<usize> {
    let same = |mapping: &Mapping| mapping.file.as_ref() == Some(file);
    mappings(maps).filter(same).map(|mapping| mapping.start).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_one_frame_whatever_its_line() {
        assert_eq!(frame("#0 strlen() /srv/a.php:3").as_deref(), Some("strlen"));
        assert_eq!(
            frame("#12 App\\Kernel::run() /srv/a.php:9").as_deref(),
            Some("App\\Kernel::run")
        );
    }

    #[test]
    fn what_has_no_name_has_that_of_its_file() {
        assert_eq!(frame("#1 {main} /srv/a b.php:3").as_deref(), Some("{main} /srv/a b.php"));
        assert_eq!(frame("#1 {closure}() /srv/a.php:3").as_deref(), Some("{closure} /srv/a.php"));
        assert_eq!(frame("(no PHP code is running)"), None);
    }

    #[test]
    fn a_variable_behind_its_file_is_found_by_that_file() {
        let maps = "\
            1000-2000 r-xp 00000000 fe:01 42 /usr/bin/outboard-php\n\
            2000-3000 rw-p 00001000 fe:01 42 /usr/bin/outboard-php\n\
            3000-4000 rw-p 00000000 00:00 0 \n\
            9000-a000 r-xp 00000000 fe:01 43 /usr/lib/libphp8.2.so\n";
        let files: Vec<bool> = mappings(maps).map(|mapping| mapping.file.is_some()).collect();
        assert_eq!(files, [true, true, false, true]);
        let file = File { device: "fe:01".into(), inode: "42".into() };
        assert_eq!(base(maps, &file), Some(0x1000));
        assert_eq!(base(maps, &File { device: "fe:02".into(), inode: "42".into() }), None);
    }

    #[test]
    fn its_own_globals_are_found_in_its_own_maps() {
        let root = Root::own().expect("a test is linked with PHP");
        let own = root.in_process(std::process::id() as i32).expect("it is the same program");
        assert_eq!(own, engine::backtrace::root());
    }
}
