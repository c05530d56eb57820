//! [`Encoder`]: streaming compression of a body.
//!
//! Called for responses that are not stored, so it is fast rather than thorough, unlike `compress`.
//! Invariant: after each piece, everything so far can be decoded.

use outboard_http_semantics::Coding;
use std::io::{self, Write};

/// Of 9.
const GZIP_LEVEL: u32 = 4;
/// Of 11.
const BROTLI_QUALITY: u32 = 4;
const BROTLI_WINDOW: u32 = 19;
/// Of 22; the library's own choice.
const ZSTD_LEVEL: i32 = 3;
const BROTLI_BUFFER_BYTES: usize = 4096;

/// A body under compression.
pub struct Encoder(Kind);

enum Kind {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    /// Starts a body.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(coding: Coding) -> io::Result<Self> {
        let out = Vec::new();
        Ok(Self(match coding {
            Coding::Gzip => {
                Kind::Gzip(flate2::write::GzEncoder::new(out, flate2::Compression::new(GZIP_LEVEL)))
            }
            Coding::Brotli => Kind::Brotli(Box::new(brotli::CompressorWriter::new(
                out,
                BROTLI_BUFFER_BYTES,
                BROTLI_QUALITY,
                BROTLI_WINDOW,
            ))),
            Coding::Zstd => Kind::Zstd(zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?),
        }))
    }

    /// Compresses a piece and flushes it.
    ///
    /// # Errors
    /// Out of memory.
    pub fn push(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        match &mut self.0 {
            Kind::Gzip(encoder) => write_flushed(encoder, piece)?,
            Kind::Brotli(encoder) => write_flushed(encoder, piece)?,
            Kind::Zstd(encoder) => write_flushed(encoder, piece)?,
        }
        Ok(std::mem::take(match &mut self.0 {
            Kind::Gzip(encoder) => encoder.get_mut(),
            Kind::Brotli(encoder) => encoder.get_mut(),
            Kind::Zstd(encoder) => encoder.get_mut(),
        }))
    }

    /// Compresses the last piece and ends the body.
    ///
    /// # Errors
    /// As [`Encoder::push`].
    pub fn end(self, piece: &[u8]) -> io::Result<Vec<u8>> {
        match self.0 {
            Kind::Gzip(mut encoder) => {
                encoder.write_all(piece)?;
                encoder.finish()
            }
            Kind::Brotli(mut encoder) => {
                encoder.write_all(piece)?;
                Ok(encoder.into_inner())
            }
            Kind::Zstd(mut encoder) => {
                encoder.write_all(piece)?;
                encoder.finish()
            }
        }
    }
}

fn write_flushed(encoder: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    encoder.write_all(piece)?;
    encoder.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn decoded(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        // An unfinished stream ends with an error after its output.
        let _ = match coding {
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
            Coding::Brotli => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out),
            Coding::Zstd => zstd::stream::read::Decoder::new(bytes)
                .expect("there is memory")
                .read_to_end(&mut out),
        };
        out
    }

    #[test]
    fn each_piece_is_flushed_and_the_end_completes_the_body() {
        let pieces = [&b"one two three "[..], b"", b"one two three four", &[7; 70_000]];
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding).unwrap();
            let (mut plain, mut coded) = (Vec::new(), Vec::new());
            for piece in pieces {
                plain.extend_from_slice(piece);
                coded.extend(encoder.push(piece).unwrap());
                assert_eq!(decoded(coding, &coded), plain, "{coding:?}");
            }
            coded.extend(encoder.end(b" end").unwrap());
            plain.extend_from_slice(b" end");
            assert_eq!(decoded(coding, &coded), plain, "{coding:?}");
            assert!(coded.len() < 2000, "{coding:?}: {}", coded.len());
        }
    }

    #[test]
    fn a_body_in_one_piece_is_complete() {
        for coding in Coding::ALL {
            let coded = Encoder::new(coding).unwrap().end(b"all of it").unwrap();
            assert_eq!(decoded(coding, &coded), b"all of it", "{coding:?}");
        }
    }
}
