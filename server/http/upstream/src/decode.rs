//! [`Decoder`]: streaming decompression of content codings (RFC 9110 8.4).
//!
//! Called with each piece of a body. Invariants: the output is bounded while it is produced, so that a
//! small body cannot grow without limit in memory; a body that ends within its coding is an error.

use crate::error::{Error, Kind};
use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use std::fmt;
use std::io::{self, Write};
use zstd::stream::raw::DParameter;
use zstd::stream::{raw, zio};

/// RFC 9659: servers may use a zstd window of at most 8 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;
const BROTLI_BUFFER_BYTES: usize = 8 * 1024;
const INFLATE_BUFFER_BYTES: usize = 8 * 1024;

/// Decodes one content coding.
pub(crate) struct Decoder {
    coding: Coding,
    /// Whether any byte has arrived: an empty body has no coding to end.
    begun: bool,
}

enum Coding {
    Gzip(Box<MultiGzDecoder<Bounded>>),
    /// No byte has arrived yet that distinguishes the two meanings of `deflate`.
    Deflate(Bounded),
    Inflate(Box<Inflater>),
    Brotli(Box<DecompressorWriter<Bounded>>),
    Zstd(Box<zio::Writer<Bounded, raw::Decoder<'static>>>),
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.coding {
            Coding::Gzip(_) => "gzip",
            Coding::Deflate(_) | Coding::Inflate(_) => "deflate",
            Coding::Brotli(_) => "br",
            Coding::Zstd(_) => "zstd",
        })
    }
}

/// Collects decoded bytes up to a limit.
#[derive(Debug)]
struct Bounded {
    out: Vec<u8>,
    left: u64,
    exceeded: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.left.checked_sub(bytes.len() as u64) {
            Some(left) => self.left = left,
            None => {
                self.exceeded = true;
                return Err(io::Error::other("the body is too large"));
            }
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Raw or zlib-wrapped deflate, which detects its end.
struct Inflater {
    stream: Decompress,
    bounded: Bounded,
    ended: bool,
}

impl Inflater {
    fn write(&mut self, mut piece: &[u8]) -> io::Result<()> {
        let mut out = [0; INFLATE_BUFFER_BYTES];
        while !self.ended {
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(piece, &mut out, FlushDecompress::None)?;
            let read = (self.stream.total_in() - read) as usize;
            let written = (self.stream.total_out() - written) as usize;
            piece = &piece[read..];
            self.bounded.write_all(&out[..written])?;
            self.ended = matches!(status, Status::StreamEnd);
            if piece.is_empty() && written < out.len() {
                break;
            }
            if read == 0 && written == 0 {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }
}

impl Decoder {
    /// The decoder of a `Content-Encoding`; `None` if it is unknown or absent. A body with several codings
    /// is not decoded.
    pub(crate) fn of(coding: &[u8], max_bytes: u64) -> Option<Self> {
        let bounded = Bounded { out: Vec::new(), left: max_bytes, exceeded: false };
        let coding = match coding.to_ascii_lowercase().as_slice() {
            b"gzip" | b"x-gzip" => Coding::Gzip(Box::new(MultiGzDecoder::new(bounded))),
            b"deflate" => Coding::Deflate(bounded),
            b"br" => {
                Coding::Brotli(Box::new(DecompressorWriter::new(bounded, BROTLI_BUFFER_BYTES)))
            }
            b"zstd" => {
                let mut decoder = raw::Decoder::new().ok()?;
                decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG)).ok()?;
                Coding::Zstd(Box::new(zio::Writer::new(bounded, decoder)))
            }
            _ => return None,
        };
        Some(Self { coding, begun: false })
    }

    /// Decodes a piece and appends the output to `out`.
    pub(crate) fn decode(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(&first) = piece.first() else { return Ok(()) };
        if let Coding::Deflate(bounded) = &mut self.coding {
            let empty = Bounded { out: Vec::new(), left: 0, exceeded: false };
            let bounded = std::mem::replace(bounded, empty);
            // RFC 9110 8.4.1.2 means zlib, but some servers send raw deflate. A zlib header has method 8
            // (RFC 1950 2.2), which is no valid first block of a raw stream.
            let stream = Decompress::new(first & 0x0f == 8);
            self.coding = Coding::Inflate(Box::new(Inflater { stream, bounded, ended: false }));
        }
        self.begun = true;
        let written = match &mut self.coding {
            Coding::Gzip(decoder) => write_all(decoder, piece),
            Coding::Inflate(inflater) => inflater.write(piece),
            Coding::Brotli(decoder) => write_all(decoder, piece),
            Coding::Zstd(decoder) => write_all(decoder, piece),
            Coding::Deflate(_) => Ok(()),
        };
        self.take(written, out)
    }

    /// Ends the body.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if !self.begun {
            return Ok(());
        }
        let finished = match &mut self.coding {
            Coding::Gzip(decoder) => decoder.try_finish(),
            Coding::Inflate(inflater) if inflater.ended => Ok(()),
            Coding::Inflate(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Coding::Brotli(decoder) => decoder.close(),
            Coding::Zstd(decoder) => decoder.finish(),
            Coding::Deflate(_) => Ok(()),
        };
        self.take(finished, out)
    }

    fn take(&mut self, outcome: io::Result<()>, out: &mut Vec<u8>) -> Result<(), Error> {
        let bounded = match &mut self.coding {
            Coding::Gzip(decoder) => decoder.get_mut(),
            Coding::Inflate(inflater) => &mut inflater.bounded,
            Coding::Brotli(decoder) => decoder.get_mut(),
            Coding::Zstd(decoder) => decoder.writer_mut(),
            Coding::Deflate(bounded) => bounded,
        };
        out.append(&mut bounded.out);
        match outcome {
            Ok(()) => Ok(()),
            Err(_) if bounded.exceeded => {
                Err(Error::new(Kind::TooLarge, "the decoded body is larger than allowed"))
            }
            Err(error) => {
                let what = format!("the body is not what its Content-Encoding says: {error}");
                Err(Error::new(Kind::Protocol, what).because(error))
            }
        }
    }
}

/// Writes everything and flushes the decoder's own buffer.
fn write_all(decoder: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    decoder.write_all(piece)?;
    decoder.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;

    const TEXT: &[u8] = b"the same words, the same words, the same words, and others\n";

    fn text() -> Vec<u8> {
        TEXT.repeat(2000)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn encoded() -> Vec<(&'static str, Vec<u8>)> {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text()).unwrap();
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        deflate.write_all(&text()).unwrap();
        let members = [gzip(&text()[..100]), gzip(&text()[100..])].concat();
        vec![
            ("gzip", gzip(&text())),
            ("X-GZIP", members),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", deflate.finish().unwrap()),
            ("zstd", zstd::encode_all(&text()[..], 3).unwrap()),
        ]
    }

    fn decode(coding: &str, bytes: &[u8], piece: usize, most: u64) -> Result<Vec<u8>, Error> {
        let mut decoder = Decoder::of(coding.as_bytes(), most).unwrap();
        let mut out = Vec::new();
        for piece in bytes.chunks(piece) {
            decoder.decode(piece, &mut out)?;
        }
        decoder.finish(&mut out)?;
        Ok(out)
    }

    #[test]
    fn every_coding_comes_off_however_it_is_cut() {
        for (coding, bytes) in encoded() {
            for piece in [1, 7, bytes.len()] {
                assert!(decode(coding, &bytes, piece, 1 << 20).unwrap() == text(), "{coding}");
            }
        }
    }

    #[test]
    fn a_body_that_grows_beyond_its_limit_is_refused() {
        for (coding, bytes) in encoded() {
            let error = decode(coding, &bytes, 4096, 10_000).unwrap_err();
            assert_eq!(error.kind, Kind::TooLarge, "{coding}");
        }
    }

    #[test]
    fn a_body_that_is_cut_or_broken_is_refused() {
        for (coding, bytes) in encoded() {
            let decoded = decode(coding, &bytes[..bytes.len() - 9], 4096, 1 << 20);
            assert_eq!(decoded.map_err(|error| error.kind), Err(Kind::Protocol), "{coding}");
        }
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let decoded = decode(coding, &[0xff; 400], 4096, 1 << 20);
            assert_eq!(decoded.map_err(|error| error.kind), Err(Kind::Protocol), "{coding}");
        }
    }

    #[test]
    fn an_empty_body_is_empty_in_every_coding() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            assert_eq!(decode(coding, b"", 1, 10).unwrap(), b"");
        }
        assert!(Decoder::of(b"identity", 10).is_none());
        assert!(Decoder::of(b"gzip, br", 10).is_none());
    }
}
