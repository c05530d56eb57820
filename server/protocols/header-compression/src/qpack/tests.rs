//! RFC 9204, both directions.

mod decoding;
mod encoding;

use super::*;
use crate::DecodeError;
use std::ops::ControlFlow;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn fields(list: &[(&str, &str)]) -> Fields {
    list.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// The fields; `None` if the section is blocked.
fn decode(
    decoder: &mut Decoder,
    stream_id: u64,
    section: &[u8],
) -> Result<Option<Fields>, DecodeError> {
    let mut fields = Fields::new();
    let decoded = decoder.decode(stream_id, section, 1 << 20, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        ControlFlow::<()>::Continue(())
    })?;
    match decoded {
        Decoded::Blocked => Ok(None),
        Decoded::Section(end) => {
            assert_eq!(end, FieldSection::Complete);
            Ok(Some(fields))
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
