//! [`HeaderBlock`]: response header lines, each `Name: value CRLF`, and the rules that change them.
//!
//! Invariant: every line was validated when it was added (no CR, LF or NUL), so the block can be sent
//! as it is.

use outboard_config::{ConditionSet, HeaderRule};
use outboard_http1::{InvalidHeader, write_header};

/// See the module.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct HeaderBlock {
    /// The lines, in the order in which they are sent.
    pub bytes: Vec<u8>,
    /// Whether a rule sets or removes `Server`, so that the server adds none.
    pub owns_server: bool,
}

impl HeaderBlock {
    /// A block of these lines.
    ///
    /// # Panics
    /// A line is invalid: names and values are constants of the program.
    pub fn constant(lines: &[(&str, &str)]) -> Self {
        let mut block = Self::default();
        for (name, value) in lines {
            block.add(name.as_bytes(), value.as_bytes()).expect("constant lines are valid");
        }
        block
    }

    /// Removes all lines.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.owns_server = false;
    }

    /// Appends a line.
    ///
    /// # Errors
    /// The name or value is invalid.
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), InvalidHeader> {
        write_header(&mut self.bytes, name, value)
    }

    /// The lines as name and value.
    pub fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        lines(&self.bytes)
    }

    /// Whether a line has this name; case does not matter.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.lines().any(|(theirs, _)| theirs.eq_ignore_ascii_case(name))
    }

    /// Removes all lines of this name.
    pub fn remove(&mut self, name: &[u8]) {
        if !self.contains(name) {
            return;
        }
        let kept = self
            .bytes
            .split_inclusive(|&byte| byte == b'\n')
            .filter(|line| {
                !split_line(line).is_some_and(|(theirs, _)| theirs.eq_ignore_ascii_case(name))
            })
            .collect::<Vec<_>>()
            .concat();
        self.bytes = kept;
    }

    /// Applies the rules for `path` to a response with this status: remove, then set, then add. `conditions` are those of
    /// its request.
    pub fn apply(
        &mut self,
        rules: &[HeaderRule],
        path: &[u8],
        status: u16,
        conditions: ConditionSet,
    ) {
        for rule in rules {
            let has_status = rule.status.as_ref().is_none_or(|all| all.contains(status));
            if !has_status || !rule.applies(path, conditions) {
                continue;
            }
            for name in &rule.remove {
                self.remove(name.as_bytes());
                self.note(name);
            }
            for (name, value) in &rule.set {
                self.remove(name.as_bytes());
                self.add_configured(name, value);
            }
            for (name, value) in &rule.default {
                if !self.contains(name.as_bytes()) {
                    self.add_configured(name, value);
                }
            }
            for (name, value) in &rule.add {
                self.add_configured(name, value);
            }
        }
    }

    fn note(&mut self, name: &str) {
        self.owns_server |= name.eq_ignore_ascii_case("server");
    }

    fn add_configured(&mut self, name: &str, value: &str) {
        self.note(name);
        // The configuration was checked for invalid names and values.
        let _ = self.add(name.as_bytes(), value.as_bytes());
    }
}

/// Header lines as name and value.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    bytes.split(|&byte| byte == b'\n').filter_map(split_line)
}

fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(set: &[(&str, &str)], add: &[(&str, &str)], remove: &[&str]) -> HeaderRule {
        let own = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let remove = remove.iter().map(ToString::to_string).collect();
        HeaderRule { set: own(set), add: own(add), remove, ..HeaderRule::default() }
    }

    #[test]
    fn a_default_leaves_what_the_app_has_set() {
        let mut block = HeaderBlock::default();
        block.add(b"x-frame-options", b"DENY").unwrap();
        let default = [("X-Frame-Options", "SAMEORIGIN"), ("Referrer-Policy", "no-referrer")];
        let default = default.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        block.apply(
            &[HeaderRule { default, ..HeaderRule::default() }],
            b"/",
            200,
            ConditionSet::UNKNOWN,
        );
        assert_eq!(block.bytes, b"x-frame-options: DENY\r\nReferrer-Policy: no-referrer\r\n");
    }

    #[test]
    fn rules_remove_then_set_then_add() {
        let mut block = HeaderBlock::default();
        block.add(b"X-Powered-By", b"PHP").unwrap();
        block.add(b"Cache-Control", b"no-store").unwrap();
        block.add(b"Set-Cookie", b"a=1").unwrap();
        let rules =
            [rule(&[("cache-control", "public")], &[("Set-Cookie", "b=2")], &["x-powered-by"])];
        block.apply(&rules, b"/", 404, ConditionSet::UNKNOWN);
        let expected = b"Set-Cookie: a=1\r\ncache-control: public\r\nSet-Cookie: b=2\r\n";
        assert_eq!(block.bytes, expected);
        assert!(!block.owns_server);
        for rules in [
            [rule(&[], &[], &["server"])],
            [rule(&[("Server", "x")], &[], &[])],
            [rule(&[], &[("SERVER", "x")], &[])],
        ] {
            let mut block = HeaderBlock::default();
            block.apply(&rules, b"/", 200, ConditionSet::UNKNOWN);
            assert!(block.owns_server);
        }
    }
}
