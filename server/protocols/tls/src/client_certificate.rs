//! The variables of a client's certificate, by the names and in the forms of mod_ssl.
//!
//! Called once per session, for a valid certificate.

use crate::certificate_fields::{Fields, Time};
use crate::der;
use crate::distinguished_name::{push_hex, text};
use aws_lc_rs::digest::{SHA256, digest};
use std::fmt::Write;

type Variable = (&'static str, Box<str>);

/// The variables; those that the certificate's encoding does not allow to read are left out.
pub(crate) fn variables(certificate: &[u8]) -> Vec<Variable> {
    let mut variables = Vec::with_capacity(7);
    let mut add = |name, value: Option<String>| {
        variables.extend(value.map(|value| (name, value.into_boxed_str())));
    };
    let fields = Fields::read(certificate);
    add("SSL_CLIENT_S_DN", fields.and_then(|fields| text(fields.subject)));
    add("SSL_CLIENT_I_DN", fields.and_then(|fields| text(fields.issuer)));
    add("SSL_CLIENT_M_SERIAL", fields.map(|fields| serial(fields.serial)));
    add("SSL_CLIENT_V_START", fields.and_then(|fields| time(fields.not_before)));
    add("SSL_CLIENT_V_END", fields.and_then(|fields| time(fields.not_after)));
    add("SSL_CLIENT_CERT", Some(pem(certificate)));
    let mut fingerprint = String::new();
    push_hex(&mut fingerprint, digest(&SHA256, certificate).as_ref());
    add("SSL_CLIENT_FINGERPRINT_SHA256", Some(fingerprint.to_ascii_lowercase()));
    variables
}

/// Upper case hexadecimal digits, an even number of them.
fn serial(number: &[u8]) -> String {
    let significant = match number {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    let mut text = String::new();
    push_hex(&mut text, significant);
    text
}

/// `Nov  3 20:36:30 2026 GMT` (RFC 5280 4.1.2.5).
fn time(value: der::Value<'_>) -> Option<String> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let Time { year, month, day, clock } = Time::read(value)?;
    let month = MONTHS.get((month as usize).checked_sub(1)?)?;
    let (hour, minute, second) = (&clock[..2], &clock[2..4], &clock[4..]);
    Some(format!("{month} {day:2} {hour}:{minute}:{second} {year} GMT"))
}

/// RFC 7468.
fn pem(certificate: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // 48 bytes are a line of 64 characters.
    let mut text = String::with_capacity(certificate.len() * 65 / 48 + 64);
    text.push_str("-----BEGIN CERTIFICATE-----\n");
    for line in certificate.chunks(48) {
        for three in line.chunks(3) {
            let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for at in 0..4_usize {
                let sextet = (bits >> (18 - 6 * at) & 63) as usize;
                text.push(if at > three.len() { '=' } else { char::from(ALPHABET[sextet]) });
            }
        }
        text.push('\n');
    }
    // Writing to a String does not fail.
    let _ = writeln!(text, "-----END CERTIFICATE-----");
    text
}

#[cfg(test)]
mod tests;
