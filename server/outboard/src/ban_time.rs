//! The time of a ban, as the command line has it.

/// Reads a time such as `90s`, `10m`, `1h` or `7d`; a bare number is one of seconds, as fail2ban has it.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "" | "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        _ => None,
    };
    let seconds = scale.zip(number.parse::<u64>().ok()).and_then(|(scale, n)| n.checked_mul(scale));
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.ok_or_else(|| "a time is a number with s, m, h or d, such as 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        let read = |text| seconds(text).ok();
        assert_eq!(
            ["90", "90s", "10m", "1h", "7d"].map(read),
            [Some(90), Some(90), Some(600), Some(3_600), Some(604_800)]
        );
        for text in
            ["", "0", "h", "-1h", "1w", "1.5h", "99999999999999999999", "999999999999999999d"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
