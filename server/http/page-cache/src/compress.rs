//! Compression of stored bodies.
//!
//! Called once for a stored page, on a thread other than the I/O thread, because it takes milliseconds.
//! At each level the next one would double the time for a few percent of size.

use outboard_http_semantics::Coding;
use std::io::Write;

/// A shorter body gains nothing, because it fits one packet either way.
pub const COMPRESS_MIN_BYTES: usize = 1024;

const BROTLI_QUALITY: i32 = 5;
/// Binary logarithm of brotli's window: 4 MiB.
const BROTLI_WINDOW: i32 = 22;
const ZSTD_LEVEL: i32 = 6;
const GZIP_LEVEL: u32 = 6;

/// Compresses a body; `None` if the result is not smaller.
pub fn compressed(coding: Coding, body: &[u8]) -> Option<Vec<u8>> {
    let bytes = match coding {
        Coding::Brotli => brotli(body),
        Coding::Zstd => zstd::bulk::compress(body, ZSTD_LEVEL).ok(),
        Coding::Gzip => gzip(body),
    };
    bytes.filter(|bytes| bytes.len() < body.len())
}

fn brotli(body: &[u8]) -> Option<Vec<u8>> {
    let params = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW,
        size_hint: body.len(),
        ..Default::default()
    };
    let mut bytes = Vec::new();
    brotli::BrotliCompress(&mut &body[..], &mut bytes, &params).ok()?;
    Some(bytes)
}

fn gzip(body: &[u8]) -> Option<Vec<u8>> {
    let level = flate2::Compression::new(GZIP_LEVEL);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn every_coding_is_smaller_and_decodes_to_the_body() {
        let body = b"<p>a page</p>\n".repeat(1000);
        for coding in Coding::ALL {
            let bytes = compressed(coding, &body).unwrap();
            let mut plain = Vec::new();
            match coding {
                Coding::Brotli => {
                    brotli::BrotliDecompress(&mut &bytes[..], &mut plain).unwrap();
                }
                Coding::Zstd => plain = zstd::bulk::decompress(&bytes, body.len()).unwrap(),
                Coding::Gzip => {
                    flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
                }
            }
            assert_eq!(plain, body);
            assert!(bytes.len() < body.len() / 10);
        }
    }

    #[test]
    fn a_body_that_does_not_shrink_is_not_compressed() {
        for coding in Coding::ALL {
            assert_eq!(compressed(coding, b"x"), None);
        }
    }
}
