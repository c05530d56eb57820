//! The `tracestate` field of W3C Trace Context (3.3), which is passed on as it came.
//!
//! Invariant: an invalid or long list is dropped as a whole; the context itself remains.

/// The length that has to be passed on (3.3.1.5); a longer one is dropped.
const MAX_BYTES: usize = 512;
const MAX_MEMBERS: usize = 32;

/// Whether a list can be passed on.
pub fn is_valid_state(list: &[u8]) -> bool {
    if list.len() > MAX_BYTES {
        return false;
    }
    let members = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut keys: Vec<&[u8]> = Vec::new();
    for member in members.filter(|member| !member.is_empty()) {
        let Some(at) = member.iter().position(|byte| *byte == b'=') else { return false };
        let (key, value) = (&member[..at], &member[at + 1..]);
        if !is_key(key) || !is_value(value) || keys.contains(&key) || keys.len() == MAX_MEMBERS {
            return false;
        }
        keys.push(key);
    }
    !keys.is_empty()
}

fn is_key(key: &[u8]) -> bool {
    let is_rest =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(byte);
    let is_part =
        |part: &[u8], most: usize| (1..=most).contains(&part.len()) && part.iter().all(is_rest);
    let starts = |part: &[u8]| part.first().is_some_and(u8::is_ascii_lowercase);
    match key.iter().position(|byte| *byte == b'@') {
        None => is_part(key, 256) && (starts(key) || key[0].is_ascii_digit()),
        Some(at) => {
            let (tenant, system) = (&key[..at], &key[at + 1..]);
            let begins = starts(tenant) || tenant.first().is_some_and(u8::is_ascii_digit);
            is_part(tenant, 241) && begins && is_part(system, 14) && starts(system)
        }
    }
}

fn is_value(value: &[u8]) -> bool {
    let is_allowed = |byte: &u8| (0x20..0x7f).contains(byte) && *byte != b',' && *byte != b'=';
    (1..=256).contains(&value.len()) && value.iter().all(is_allowed) && value.last() != Some(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_specification_are_valid() {
        for list in [
            "rojo=00f067aa0ba902b7",
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
            "fw529a3039@dt=FfffffffeeeeeeeeE , b*/_-1= x",
            "a=1,,b=2,",
        ] {
            assert!(is_valid_state(list.as_bytes()), "{list}");
        }
    }

    #[test]
    fn other_lists_are_dropped() {
        let many: Vec<String> = (0..33).map(|n| format!("k{n}=1")).collect();
        for list in [
            "",
            ",",
            "a",
            "=1",
            "a=",
            "A=1",
            "a=1,a=2",
            "a=b=c",
            "a=\u{e9}",
            "@b=1",
            "a@=1",
            "a@1=1",
            "a b=1",
            "a=\tb",
            &many.join(","),
            &format!("a={}", "x".repeat(257)),
            &format!("a={},b={}", "x".repeat(256), "y".repeat(256)),
        ] {
            assert!(!is_valid_state(list.as_bytes()), "{list}");
        }
    }
}
