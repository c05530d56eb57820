//! RFC 7541, both directions.

mod decoding;
mod encoding;
mod examples;

use super::*;
use crate::DecodeError;
use std::ops::ControlFlow;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn fields(list: &[(&str, &str)]) -> Fields {
    list.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn decode_within(
    decoder: &mut Decoder,
    block: &[u8],
    list_bytes_max: usize,
) -> Result<(Fields, FieldSection<()>), DecodeError> {
    let mut fields = Fields::new();
    let end = decoder.decode(block, list_bytes_max, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok((fields, end))
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, DecodeError> {
    let (fields, end) = decode_within(decoder, block, 1 << 20)?;
    assert_eq!(end, FieldSection::Complete);
    Ok(fields)
}

fn encode(encoder: &mut Encoder, fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut block = Vec::new();
    let mut writer = encoder.begin(&mut block);
    for (name, value) in fields {
        writer.field(name, value);
    }
    block
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
