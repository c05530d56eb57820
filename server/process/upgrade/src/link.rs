//! [`Link`]: the connection of two servers that upgrade, for what only one process can have.
//!
//! Used by the gateway on the lead from the start of the successor to the end of the predecessor. It carries
//! frames, whose content is the gateway's. Invariants: frames arrive whole and in order; sending waits for
//! nothing, so callers bound what they send.

use outboard_reactor::{Event, Stream, spawn};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// The format of the frames, and of the messages about them. A successor of another one does not start.
pub const LINK_VERSION: u32 = 1;

const HEAD_BYTES: usize = 4;
/// A record and its key, or a task, are shorter.
const MAX_FRAME_BYTES: usize = 1 << 30;
const READ_BYTES: usize = 64 << 10;

/// See the module.
pub struct Link {
    reading: Stream,
    input: RefCell<Vec<u8>>,
    output: RefCell<VecDeque<Vec<u8>>>,
    filled: Event,
    is_sending: Cell<bool>,
    is_closed: Cell<bool>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("is_closed", &self.is_closed).finish_non_exhaustive()
    }
}

impl Link {
    /// Both ends.
    ///
    /// # Errors
    /// `socketpair(2)` fails.
    pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
    }

    /// One end, on the event loop.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn new(socket: OwnedFd) -> io::Result<Rc<Self>> {
        let writing = Stream::new(socket.try_clone()?)?;
        let link = Rc::new(Self {
            reading: Stream::new(socket)?,
            input: RefCell::default(),
            output: RefCell::default(),
            filled: Event::default(),
            is_sending: Cell::default(),
            is_closed: Cell::default(),
        });
        spawn(link.clone().write(writing));
        Ok(link)
    }

    /// Sends a frame. If the other process has ended, it is dropped.
    pub fn send(&self, frame: Vec<u8>) {
        if !self.is_closed.get() {
            self.output.borrow_mut().push_back(frame);
            self.filled.set();
        }
    }

    /// Whether everything was sent.
    pub fn is_flushed(&self) -> bool {
        self.is_closed.get() || (self.output.borrow().is_empty() && !self.is_sending.get())
    }

    /// Ends it: the other process notices.
    pub fn close(&self) {
        self.is_closed.set(true);
        // If the other process has ended, it is closed already.
        let _ = shutdown(self.reading.source(), Shutdown::Both);
        self.filled.set();
    }

    /// The next frame; `None` if the other process has ended. One task at a time.
    pub async fn receive(&self) -> Option<Vec<u8>> {
        let mut input = self.input.take();
        let frame = loop {
            if let Some(length) = length(&input) {
                let end = HEAD_BYTES + length;
                if length > MAX_FRAME_BYTES {
                    break None;
                }
                if input.len() >= end {
                    let rest = input.split_off(end);
                    let frame = std::mem::replace(&mut input, rest).split_off(HEAD_BYTES);
                    break Some(frame);
                }
                input.reserve(end - input.len());
            }
            input.reserve(READ_BYTES);
            match self.reading.read(&mut input).await {
                Ok(0) | Err(_) => break None,
                Ok(_) => {}
            }
        };
        self.input.replace(input);
        frame
    }

    async fn write(self: Rc<Self>, stream: Stream) {
        while !self.is_closed.get() {
            let Some(frame) = self.output.borrow_mut().pop_front() else {
                self.filled.wait().await;
                continue;
            };
            self.is_sending.set(true);
            let Ok(length) = u32::try_from(frame.len()) else { break };
            let length = length.to_le_bytes();
            let mut slices = [IoSlice::new(&length), IoSlice::new(&frame)];
            if stream.write_all(&mut slices).await.is_err() {
                break;
            }
            self.is_sending.set(false);
        }
        self.is_closed.set(true);
        self.output.take();
    }
}

fn length(input: &[u8]) -> Option<usize> {
    let head = input.first_chunk::<HEAD_BYTES>()?;
    Some(u32::from_le_bytes(*head) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::run;

    #[test]
    fn frames_arrive_whole_and_in_order() {
        run(async {
            let (one, other) = Link::pair().unwrap();
            let (one, other) = (Link::new(one).unwrap(), Link::new(other).unwrap());
            let frames = [vec![], vec![1], vec![2; 3_000_000], vec![3; 10]];
            frames.iter().for_each(|frame| one.send(frame.clone()));
            assert!(!one.is_flushed());
            for frame in &frames {
                assert!(other.receive().await.as_ref() == Some(frame));
            }
            other.send(vec![7]);
            assert_eq!(one.receive().await, Some(vec![7]));
            assert!(one.is_flushed());
        })
        .unwrap();
    }

    #[test]
    fn the_end_of_the_other_process_is_the_end_of_the_link() {
        run(async {
            let (one, other) = Link::pair().unwrap();
            let one = Link::new(one).unwrap();
            drop(other);
            assert_eq!(one.receive().await, None);
            one.send(vec![1]);
            while !one.is_flushed() {
                outboard_reactor::sleep(1).await;
            }
        })
        .unwrap();
    }

    #[test]
    fn a_frame_of_a_wrong_length_ends_the_link() {
        run(async {
            let (one, other) = Link::pair().unwrap();
            let one = Link::new(one).unwrap();
            rustix::io::write(&other, &u32::MAX.to_le_bytes()).unwrap();
            assert_eq!(one.receive().await, None);
        })
        .unwrap();
    }
}
