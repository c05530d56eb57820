//! Lines of several shards for one target.

use super::*;
use crate::sink::Sink;
use std::io::Read;
use std::thread;

const SHARDS: usize = 4;
const LINES: usize = 300;

fn directory(name: &str) -> PathBuf {
    let name = format!("outboard-{name}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Writes lines of different lengths on a thread for each shard; the lines that were lost.
fn write_on_threads(target: &Arc<SinkTarget>) -> thread::JoinHandle<u64> {
    let target = target.clone();
    let shards = (0..SHARDS).map(move |shard| {
        let target = target.clone();
        thread::spawn(move || {
            let sink = Sink::of(&target);
            let letter = b'a' + shard as u8;
            for line in 0..LINES {
                sink.line(|out| out.resize(out.len() + 1 + line * 7, letter));
                sink.flush();
            }
            while sink.waiting_bytes() > 0 {
                sink.finish();
            }
            sink.lost_lines()
        })
    });
    let shards: Vec<_> = shards.collect();
    thread::spawn(move || shards.into_iter().map(|shard| shard.join().unwrap()).sum())
}

/// The number of lines, each of one shard.
fn check(written: &[u8]) -> u64 {
    let lines: Vec<&[u8]> = written.split_inclusive(|byte| *byte == b'\n').collect();
    for line in &lines {
        let (end, letters) = line.split_last().unwrap();
        assert!(*end == b'\n' && letters.iter().all(|letter| *letter == line[0]));
        assert_eq!((letters.len() - 1) % 7, 0);
    }
    lines.len() as u64
}

#[test]
fn lines_of_shards_are_whole_in_a_file() {
    let directory = directory("sink-shards");
    let path = directory.join("log");
    let target = Target::File(path.clone());
    let file = target.open(&Opener::default()).unwrap();
    let target = SinkTarget::new(target, Opener::default(), file, None);
    assert_eq!(write_on_threads(&target).join().unwrap(), 0);
    assert_eq!(check(&std::fs::read(&path).unwrap()), (SHARDS * LINES) as u64);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn lines_of_shards_are_whole_for_a_reader_that_takes_parts() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let writer = File::from(std::os::fd::OwnedFd::from(writer));
    let path = PathBuf::from("a pipe");
    let target = SinkTarget::new(Target::File(path), Opener::default(), Some(writer), None);
    let writers = write_on_threads(&target);
    let reader = thread::spawn(move || {
        let (mut read, mut piece) = (Vec::new(), [0; 1000]);
        loop {
            match reader.read(&mut piece).unwrap() {
                0 => return read,
                count => read.extend_from_slice(&piece[..count]),
            }
        }
    });
    let lost_lines = writers.join().unwrap();
    target.write_last(&mut Vec::new());
    drop(target);
    assert_eq!(check(&reader.join().unwrap()) + lost_lines, (SHARDS * LINES) as u64);
}

#[test]
fn the_rest_of_a_line_comes_before_other_lines() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let writer = File::from(std::os::fd::OwnedFd::from(writer));
    let target = Target::File("a pipe".into());
    let target = SinkTarget::new(target, Opener::default(), Some(writer), None);
    let (one, other) = (Sink::of(&target), Sink::of(&target));
    let long = vec![b'x'; 100_000];
    one.line(|out| out.extend_from_slice(&long));
    one.flush();
    assert_eq!(one.waiting_bytes(), 0, "the rest belongs to the target");
    other.line(|out| out.push(b'y'));
    other.flush();
    assert_eq!(other.waiting_bytes(), 2);
    let mut read = vec![0; 65_536];
    reader.read_exact(&mut read).unwrap();
    other.flush();
    let mut rest = vec![0; 100_003 - read.len()];
    reader.read_exact(&mut rest).unwrap();
    assert!(rest.ends_with(b"x\ny\n"));
}

#[test]
fn a_rotated_file_is_reopened_for_all_shards() {
    let directory = directory("sink-rotation");
    let (path, old) = (directory.join("log"), directory.join("log.1"));
    let target = Target::File(path.clone());
    let file = target.open(&Opener::default()).unwrap();
    let target = SinkTarget::new(target, Opener::default(), file, None);
    let sinks = [Sink::of(&target), Sink::of(&target)];
    let write = |line: &[u8]| {
        sinks.iter().for_each(|sink| {
            sink.line(|out| out.extend_from_slice(line));
            sink.flush();
        });
    };
    write(b"before");
    std::fs::rename(&path, &old).unwrap();
    target.reopen().unwrap();
    write(b"after");
    assert_eq!(std::fs::read(&old).unwrap(), b"before\nbefore\n");
    assert_eq!(std::fs::read(&path).unwrap(), b"after\nafter\n");
    std::fs::remove_dir_all(&directory).unwrap();
}
