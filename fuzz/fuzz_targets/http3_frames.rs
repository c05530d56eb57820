//! Any bytes as frames of HTTP/3: no panic, the same frames in two pieces as in one, and no more payload
//! than was announced.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http3::{FramePart, FrameReader, Priority, Settings};

#[derive(Debug, Default, PartialEq)]
struct Frame {
    kind: u64,
    len: u64,
    payload: Vec<u8>,
    is_complete: bool,
}

fn read(pieces: &[&[u8]]) -> (Vec<Frame>, bool) {
    let (mut reader, mut frames) = (FrameReader::new(), Vec::<Frame>::new());
    for mut piece in pieces.iter().copied() {
        while let Some(part) = reader.next(&mut piece) {
            match (part, frames.last_mut()) {
                (FramePart::Start { kind, len }, last) => {
                    assert!(last.is_none_or(|frame| frame.is_complete));
                    frames.push(Frame { kind, len, ..Frame::default() });
                }
                (FramePart::Payload(bytes), Some(frame)) => frame.payload.extend(bytes),
                (FramePart::End, Some(frame)) => {
                    assert_eq!(frame.payload.len() as u64, frame.len);
                    frame.is_complete = true;
                }
                (part, None) => panic!("{part:?} without a frame"),
            }
        }
        assert!(piece.is_empty());
    }
    (frames, reader.is_between_frames())
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let (first, second) = bytes.split_at(usize::from(cut) % (bytes.len() + 1));
    let whole = read(&[bytes]);
    assert_eq!(read(&[first, second]), whole);
    if let Ok(settings) = Settings::read(bytes) {
        let mut frame = Vec::new();
        settings.write(&mut frame);
        assert_eq!(Settings::read(&frame[2..]), Ok(settings));
    }
    assert!(Priority::parse(bytes).urgency <= 7);
});
