//! A PHP host that means harm: it speaks the protocol of `outboard-php` for a while, and then breaks
//! it in every way that it finds by chance. `tests/hostile.rs` puts it in an app's place.
//!
//! The zygote is this process, its workers are threads. What it does follows from a seed, which it
//! prints; `HOSTILE_SEED` among the app's variables sets it. It begins once the file `HOSTILE_BEGIN` exists.

#![forbid(unsafe_code)]

use outboard_ring::channel::WorkerChannel;
use outboard_ring::control::{self, Event, Order};
use outboard_ring::doorbell::{Awaited, Doorbell};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::response::{Done, Outcome};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// All of a worker's shared memory (`ring/src/channel.rs`).
const MEMORY_BYTES: u64 = (16 + 12 + 128 + 256) * 1024;
/// Where the cursors are.
const CURSORS: [u64; 8] = [128, 136, 192, 200, 256, 264, 320, 328];

const KINDS: [FrameKind; 11] = [
    FrameKind::Ready,
    FrameKind::Head,
    FrameKind::Body,
    FrameKind::Flush,
    FrameKind::End,
    FrameKind::Done,
    FrameKind::Log,
    FrameKind::Operation,
    FrameKind::Interim,
    FrameKind::Request,
    FrameKind::Whole,
];

/// xorshift64* (Vigna): the same seed does the same.
#[derive(Debug, Clone)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }

    /// Numbers at which arithmetic goes wrong, now and then.
    fn number(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => u64::MAX - self.below(3),
            2 => 1 << self.below(64),
            3 => i64::MAX as u64,
            4 => self.below(512 * 1024),
            _ => self.next(),
        }
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let len = self.below(most + 1);
        (0..len).map(|_| self.next() as u8).collect()
    }

    fn tag(&mut self, present: Tag) -> Tag {
        match self.below(4) {
            0 => Tag { slot: self.number() as u32, generation: self.number() as u32 },
            1 => Tag { generation: self.next() as u32, ..present },
            _ => present,
        }
    }
}

struct Worker {
    chance: Chance,
    channel: WorkerChannel,
    memory: File,
    awaited: Awaited,
    bell: Doorbell,
    output: File,
    killed: Arc<AtomicBool>,
    control: Arc<OwnedFd>,
    present: Tag,
    begin: Begin,
}

/// The file that exists once it is time for harm.
#[derive(Debug, Clone)]
struct Begin(Arc<Path>);

impl Begin {
    fn has_come(&self) -> bool {
        self.0.exists()
    }
}

impl Worker {
    fn live(mut self) {
        self.say(FrameKind::Ready, Tag::default(), &[]);
        let mut frame = Vec::new();
        let well_until = self.chance.below(40);
        for step in 0.. {
            if self.killed.load(Ordering::Relaxed) || !self.answer(&mut frame) {
                return;
            }
            if step > well_until && self.begin.has_come() {
                for _ in 0..=self.chance.below(5) {
                    self.harm();
                }
            }
            self.bell.ring();
            let mut ready = [PollFd::new(&self.awaited, PollFlags::IN)];
            let patience = rustix::event::Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
            let _ = poll(&mut ready, Some(&patience));
            self.awaited.clear();
        }
    }

    /// Answers what there is; false when it broke its own end, or was ordered to leave.
    fn answer(&mut self, frame: &mut Vec<u8>) -> bool {
        loop {
            match self.channel.receive(frame) {
                Err(_) => return false,
                Ok(None) => return true,
                Ok(Some(header)) => {
                    let _ = self.channel.release();
                    match header.kind {
                        FrameKind::Stop => return false,
                        FrameKind::Request if self.channel.start(header.tag) => {
                            self.present = header.tag;
                            if self.chance.below(20) > 0 {
                                self.reply();
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn reply(&mut self) {
        let mut head = Vec::new();
        outboard_ring::response::ResponseHead::encode_status(&mut head, 200, b"");
        self.say(FrameKind::Head, self.present, &head);
        self.say(FrameKind::Body, self.present, b"hello");
        let done = Done {
            outcome: Outcome::Finished,
            leaving: false,
            takes_snapshot: false,
            handled: true,
            peak_memory_bytes: self.chance.number(),
        };
        self.say(FrameKind::Done, self.present, &done.encode());
    }

    fn say(&mut self, kind: FrameKind, tag: Tag, payload: &[u8]) {
        let _ = self.channel.push(kind, tag, &[payload]);
        let _ = self.channel.publish();
        self.bell.ring();
    }

    fn harm(&mut self) {
        match self.chance.below(12) {
            0..=2 => self.any_frame(),
            3 => self.any_operation(),
            4 => self.many_frames(),
            5 => {
                let (at, value) = (CURSORS[self.chance.below(8) as usize], self.chance.number());
                self.write_at(at, &value.to_le_bytes());
            }
            6 => {
                let (at, bytes) = (self.chance.below(MEMORY_BYTES), self.chance.bytes(64));
                self.write_at(at, &bytes);
            }
            7 => {
                // The claims and whatever else is in the header.
                let (at, value) = (self.chance.below(2048) * 8, self.chance.number());
                self.write_at(at, &value.to_le_bytes());
            }
            8 => {
                // A full count, and no O_NONBLOCK: a writer sleeps then.
                let _ = rustix::io::write(&self.bell, &(u64::MAX - 1).to_ne_bytes());
                let _ = rustix::fs::fcntl_setfl(&self.bell, rustix::fs::OFlags::empty());
                let _ = rustix::fs::fcntl_setfl(&self.awaited, rustix::fs::OFlags::empty());
                // Itself, too, which the kernel undoes here.
                let _ = rustix::fs::fcntl_setfl(&self.bell, rustix::fs::OFlags::NONBLOCK);
            }
            9 => (0..self.chance.below(20_000)).for_each(|_| self.bell.ring()),
            10 => {
                let lines = self.chance.bytes(16_000);
                let _ = self.output.write_all(&lines);
            }
            _ => self.any_event(),
        }
    }

    fn write_at(&self, at: u64, bytes: &[u8]) {
        let room = MEMORY_BYTES.saturating_sub(at) as usize;
        let _ = self.memory.write_at(&bytes[..bytes.len().min(room)], at);
    }

    fn any_frame(&mut self) {
        let kind = KINDS[self.chance.below(KINDS.len() as u64) as usize];
        let (tag, payload) = (self.chance.tag(self.present), self.chance.bytes(200));
        self.say(kind, tag, &payload);
    }

    /// One that can be read, or nearly.
    fn any_operation(&mut self) {
        let mut payload = Vec::new();
        payload.extend_from_slice(&(self.chance.below(4) as u32).to_le_bytes());
        payload.extend_from_slice(&(self.chance.below(4) as u32).to_le_bytes());
        payload.push([1, 2, 3, 8, 16][self.chance.below(5) as usize]);
        let numbers = self.chance.below(6);
        for _ in 0..numbers {
            payload.extend_from_slice(&(self.chance.number() as u32).to_le_bytes());
        }
        let most = if self.chance.below(10) == 0 { 100_000 } else { 300 };
        payload.extend(self.chance.bytes(most));
        let tag = self.chance.tag(self.present);
        self.say(FrameKind::Operation, tag, &payload);
    }

    /// Keeps the ring full for a while.
    fn many_frames(&mut self) {
        let until = Instant::now() + Duration::from_millis(self.chance.below(100));
        let kind = [FrameKind::Log, FrameKind::Body, FrameKind::Operation, FrameKind::Interim]
            [self.chance.below(4) as usize];
        let payload = self.chance.bytes(40);
        while Instant::now() < until && !self.killed.load(Ordering::Relaxed) {
            let _ = self.channel.push(kind, self.present, &[&payload]);
            let _ = self.channel.publish();
        }
    }

    /// What only a zygote says, and not this.
    fn any_event(&mut self) {
        let worker = self.chance.below(20);
        let event = match self.chance.below(6) {
            0 => Event::Forked { worker, pid: self.chance.number() as i32 },
            1 => Event::ForkFailed { worker, message: "x\n".repeat(50) },
            2 => Event::Exited {
                worker,
                code: Some(self.chance.number() as i32),
                signal: Some(self.chance.number() as i32),
            },
            3 => Event::StartFailed { message: "again".to_owned() },
            4 => started(),
            _ => {
                if self.chance.below(20) == 0 {
                    let _ = rustix::io::write(&self.control, b"{\"event\":");
                }
                return;
            }
        };
        for _ in 0..=self.chance.below(100) {
            let _ = control::send(&self.control, &event, &[]);
        }
    }
}

fn started() -> Event {
    Event::Started {
        pid: i32::MIN,
        php_version: "8.2".to_owned(),
        opcache: true,
        ini_file: None,
        post_max_bytes: u64::MAX,
        rewind: None,
        request_reads: Vec::new(),
        rewind_refused: None,
    }
}

fn main() {
    let control = rustix::io::dup(rustix::stdio::stdin()).expect("standard input is a socket");
    let Ok(Some((Order::Start { settings }, _))) = control::receive(&control) else { return };
    let base = settings.env.get("HOSTILE_SEED").and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    let seed = base.wrapping_mul(1_000_003).wrapping_add(u64::from(std::process::id())) | 1;
    let begin =
        Begin(settings.env.get("HOSTILE_BEGIN").map_or_else(PathBuf::new, PathBuf::from).into());
    eprintln!("hostile: seed {seed}");
    let mut chance = Chance(seed);
    let control = Arc::new(control);
    let _ = control::send(&control, &started(), &[]);
    let mut killed: HashMap<u64, Arc<AtomicBool>> = HashMap::new();
    while let Ok(Some((order, descriptors))) = control::receive::<Order>(control.as_fd()) {
        match order {
            Order::Fork { worker } => {
                let flag = Arc::new(AtomicBool::new(false));
                killed.insert(worker, flag.clone());
                let pid = std::process::id() as i32;
                let _ = control::send(&control, &Event::Forked { worker, pid }, &[]);
                let chance = Chance(chance.next() | 1);
                let way = (control.clone(), begin.clone());
                spawn_worker(worker, chance, descriptors, flag, way);
            }
            Order::Signal { worker, signal: 9 } => {
                if let Some(flag) = killed.remove(&worker) {
                    flag.store(true, Ordering::Relaxed);
                }
            }
            _ => {}
        }
        if chance.below(300) == 0 && begin.has_come() {
            return;
        }
    }
}

fn spawn_worker(
    number: u64,
    chance: Chance,
    descriptors: Vec<OwnedFd>,
    killed: Arc<AtomicBool>,
    (control, begin): (Arc<OwnedFd>, Begin),
) {
    let Ok([memory, awaited, bell, output]) = <[OwnedFd; 4]>::try_from(descriptors) else { return };
    thread::spawn(move || {
        if let Ok(channel) = WorkerChannel::map(&memory) {
            let worker = Worker {
                chance,
                channel,
                memory: memory.into(),
                awaited: Awaited::from_fd(awaited),
                bell: Doorbell::from_fd(bell),
                output: output.into(),
                killed,
                control: control.clone(),
                present: Tag::default(),
                begin,
            };
            // Its own end may find what it broke.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.live()));
        }
        let event = Event::Exited { worker: number, code: Some(0), signal: None };
        let _ = control::send(&control, &event, &[]);
    });
}
