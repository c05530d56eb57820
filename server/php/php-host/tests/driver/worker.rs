//! The gateway's end of a worker's ring.

use super::response::Collected;
use super::{PATIENCE, RequestSpec, Response};
use outboard_ring::channel::{GatewayChannel, LEASES};
use outboard_ring::doorbell::{Awaited, Doorbell};
use outboard_ring::frame::{FrameHeader, FrameKind, Tag};
use outboard_ring::response::{Done, Whole};
use outboard_ring::spsc::{Sleep, Wake};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::Read;

/// A worker and the gateway's end of its ring.
pub struct Worker {
    pub number: u64,
    pub pid: i32,
    pub channel: GatewayChannel,
    pub(super) bell: Doorbell,
    pub(super) own_bell: Awaited,
    /// The doorbell that the worker rings: a wait would not end if all its descriptors were closed.
    pub(super) _gateway_bell: Doorbell,
    pub(super) output: File,
    pub(super) generation: u32,
    /// Frames that stand for a whole response that was received.
    pub(super) expanded: VecDeque<(FrameHeader, Vec<u8>)>,
}

impl Worker {
    /// Sends a request and waits for its end.
    pub fn request(&mut self, request: &RequestSpec) -> Response {
        let tag = self.begin(request);
        self.finish(tag, request.body.as_deref().unwrap_or(b""))
    }

    /// Sends only the request frame.
    pub fn begin(&mut self, request: &RequestSpec) -> Tag {
        self.generation += 1;
        let tag = Tag { slot: self.generation % LEASES as u32, generation: self.generation };
        let mut payload = Vec::new();
        request.encode(&mut payload);
        self.channel.offer(tag);
        assert!(self.channel.push(FrameKind::Request, tag, &[&payload]).unwrap());
        self.publish();
        tag
    }

    /// Sends the body as space allows and collects frames until `Done`.
    pub fn finish(&mut self, tag: Tag, body: &[u8]) -> Response {
        let piece = self.channel.largest_payload_bytes() / 2;
        let mut pieces = body.chunks(piece);
        let mut waiting = pieces.next();
        let mut collected = Collected::default();
        loop {
            while let Some(bytes) = waiting {
                if !self.channel.push(FrameKind::RequestBody, tag, &[bytes]).unwrap() {
                    if self.channel.prepare_wait(bytes.len()).unwrap() == Sleep::MayBlock {
                        break;
                    }
                    continue;
                }
                waiting = pieces.next();
            }
            self.publish();
            if let Some((header, payload)) = self.try_frame() {
                assert_eq!(header.tag, tag, "{header:?}");
                if let Some(response) = collected.take(header.kind, &payload) {
                    return response;
                }
            } else {
                self.sleep();
            }
        }
    }

    /// Sends all at once, and returns the responses in order of completion, each with its index in
    /// `requests`.
    pub fn request_all(&mut self, requests: &[RequestSpec]) -> Vec<(usize, Response)> {
        let tags: Vec<Tag> = requests.iter().map(|request| self.begin(request)).collect();
        self.finish_all(&tags)
    }

    /// Collects the responses to these requests, in order of completion.
    pub fn finish_all(&mut self, tags: &[Tag]) -> Vec<(usize, Response)> {
        let mut collected: HashMap<u32, Collected> = HashMap::new();
        let mut responses = Vec::new();
        while responses.len() < tags.len() {
            let (header, payload) = self.frame();
            let place = tags.iter().position(|tag| *tag == header.tag).expect("a tag in flight");
            let own = collected.entry(header.tag.generation).or_default();
            if let Some(response) = own.take(header.kind, &payload) {
                responses.push((place, response));
            }
        }
        responses
    }

    pub fn push(&mut self, kind: FrameKind, tag: Tag, payload: &[u8]) {
        if kind == FrameKind::Request {
            self.channel.offer(tag);
        }
        assert!(self.channel.push(kind, tag, &[payload]).unwrap());
        self.publish();
    }

    pub fn abort(&mut self, tag: Tag) {
        self.channel.abort(tag);
        self.bell.ring();
    }

    pub fn stop(&mut self) {
        self.push(FrameKind::Stop, Tag::default(), b"");
    }

    pub fn publish(&mut self) {
        if self.channel.publish() == Wake::Needed {
            self.bell.ring();
        }
    }

    /// The next frame, waiting for it.
    pub fn frame(&mut self) -> (FrameHeader, Vec<u8>) {
        loop {
            match self.try_frame() {
                Some(frame) => return frame,
                None => self.sleep(),
            }
        }
    }

    pub fn try_frame(&mut self) -> Option<(FrameHeader, Vec<u8>)> {
        if let Some(frame) = self.expanded.pop_front() {
            return Some(frame);
        }
        let mut payload = Vec::new();
        let header = self.channel.receive(&mut payload).unwrap()?;
        if self.channel.release() == Wake::Needed {
            self.bell.ring();
        }
        if header.kind != FrameKind::Whole {
            return Some((header, payload));
        }
        let Whole { done, head, body } = Whole::decode(&payload).unwrap();
        let frame = |kind, payload: &[u8]| (FrameHeader { kind, ..header }, payload.to_vec());
        let body = Some(body).filter(|body| !body.is_empty());
        self.expanded.extend(body.map(|body| frame(FrameKind::Body, body)));
        self.expanded.push_back(frame(FrameKind::Done, &done.encode()));
        Some(frame(FrameKind::Head, head))
    }

    fn sleep(&mut self) {
        if self.channel.prepare_sleep().unwrap() == Sleep::MayBlock {
            let mut ready = [PollFd::new(&self.own_bell, PollFlags::IN)];
            assert_ne!(poll(&mut ready, Some(&PATIENCE)).unwrap(), 0, "the worker sends nothing");
            self.own_bell.wait();
            self.channel.cancel_sleep();
        }
    }

    /// Waits for a backtrace of `tag`.
    pub fn backtrace(&self, tag: Tag) -> String {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            if let Some(text) = self.channel.backtrace(tag) {
                return text;
            }
            assert!(std::time::Instant::now() < deadline, "no backtrace came");
            std::thread::yield_now();
        }
    }

    /// Drops frames until the request's end.
    pub fn drain(&mut self, tag: Tag) -> Done {
        loop {
            let (header, payload) = self.frame();
            assert_eq!(header.tag, tag);
            if header.kind == FrameKind::Done {
                return Done::decode(&payload).unwrap();
            }
        }
    }

    /// Returns the worker's standard streams, after its exit.
    pub fn output(mut self) -> String {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        text
    }
}
