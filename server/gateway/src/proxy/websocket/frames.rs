//! [`Frames`]: where the frames of WebSocket end (RFC 6455 5.2), in bytes that are passed on unchanged.
//!
//! Used by [`super::relay`], which may add a frame only between two. Invariant: any bytes are accepted; those of
//! another protocol have no meaning here.

/// The longest head: two bytes, a length of eight, a mask of four.
const HEAD_BYTES: usize = 14;
const CLOSE: u8 = 8;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Frames {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    payload_left: u64,
    has_close: bool,
}

impl Frames {
    /// Whether no frame is in progress.
    pub(super) fn is_between(&self) -> bool {
        self.head_bytes == 0
    }

    /// Whether a whole close frame has passed.
    pub(super) fn has_close(&self) -> bool {
        self.has_close
    }

    /// These bytes have passed.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = &bytes[self.step(bytes)..];
        }
    }

    /// How many of these bytes belong to the frame in progress.
    pub(super) fn rest_of_frame(mut self, bytes: &[u8]) -> usize {
        let mut count = 0;
        while count < bytes.len() && (count == 0 || !self.is_between()) {
            count += self.step(&bytes[count..]);
        }
        count
    }

    /// Passes a byte of a head, or as much as there is of a payload.
    fn step(&mut self, bytes: &[u8]) -> usize {
        if self.payload_left > 0 {
            let count = bytes.len().min(usize::try_from(self.payload_left).unwrap_or(usize::MAX));
            self.payload_left -= count as u64;
            if self.payload_left == 0 {
                self.end();
            }
            return count;
        }
        self.head[self.head_bytes] = bytes[0];
        self.head_bytes += 1;
        let Some(payload_bytes) = self.payload_bytes() else { return 1 };
        self.payload_left = payload_bytes;
        if payload_bytes == 0 {
            self.end();
        }
        1
    }

    /// The length of the payload, once the head is whole.
    fn payload_bytes(&self) -> Option<u64> {
        let head = &self.head[..self.head_bytes];
        let (&[_, second], rest) = head.split_first_chunk()?;
        let mask_bytes = if second & 0x80 == 0 { 0 } else { 4 };
        let (length, rest) = match second & 0x7f {
            126 => rest
                .split_first_chunk()
                .map(|(length, rest)| (u16::from_be_bytes(*length).into(), rest))?,
            127 => rest
                .split_first_chunk()
                .map(|(length, rest)| (u64::from_be_bytes(*length), rest))?,
            short => (short.into(), rest),
        };
        (rest.len() == mask_bytes).then_some(length)
    }

    fn end(&mut self) {
        self.has_close |= self.head[0] & 0x0f == CLOSE;
        self.head_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(opcode: u8, payload: usize, is_masked: bool) -> Vec<u8> {
        let mask = if is_masked { 0x80 } else { 0 };
        let mut frame = vec![0x80 | opcode];
        match payload {
            0..126 => frame.push(mask | payload as u8),
            126..65_536 => {
                frame.push(mask | 126);
                frame.extend((payload as u16).to_be_bytes());
            }
            _ => {
                frame.push(mask | 127);
                frame.extend((payload as u64).to_be_bytes());
            }
        }
        frame.extend(vec![7; 4 * usize::from(is_masked) + payload]);
        frame
    }

    #[test]
    fn frames_of_every_length_end_where_they_do() {
        for payload in [0, 1, 125, 126, 65_535, 65_536] {
            for is_masked in [false, true] {
                let frame = frame(2, payload, is_masked);
                let mut frames = Frames::default();
                let followed = [&frame[..], b"\x81\x01x"].concat();
                assert_eq!(frames.rest_of_frame(&followed), frame.len());
                let (last, all_but_last) = frame.split_last().unwrap();
                frames.pass(all_but_last);
                assert!(!frames.is_between(), "{payload}");
                frames.pass(&[*last]);
                assert!(frames.is_between() && !frames.has_close());
            }
        }
    }

    #[test]
    fn a_close_frame_is_recognized_when_it_is_whole() {
        let mut frames = Frames::default();
        let close = [frame(1, 3, true), frame(CLOSE, 2, true)].concat();
        frames.pass(&close[..close.len() - 1]);
        assert!(!frames.has_close());
        frames.pass(&close[close.len() - 1..]);
        assert!(frames.has_close() && frames.is_between());
    }
}
