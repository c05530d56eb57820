//! [`GetoptArgs`]: arguments parsed by the rules of getopt(3).

use crate::bench::stop::Stop;

/// The flags of a tool.
pub(super) struct GetoptSpec {
    /// Short flags; one with a value is followed by `:`.
    pub(super) short: &'static str,
    /// Long flags with their short equivalents.
    pub(super) long: &'static [(&'static str, char)],
}

/// The given flags and words, in order.
pub(super) struct GetoptArgs {
    flags: Vec<(char, String)>,
    words: Vec<String>,
}

impl GetoptArgs {
    /// Parses `arguments`.
    pub(super) fn read(spec: &GetoptSpec, arguments: &[String]) -> Result<Self, Stop> {
        let mut read = Self { flags: Vec::new(), words: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut next = || arguments.next().cloned();
            if let Some(long) = argument.strip_prefix("--") {
                read.long(spec, long, &mut next)?;
            } else if let Some(short) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                read.short(spec, short, &mut next)?;
            } else {
                read.words.push(argument.clone());
            }
        }
        Ok(read)
    }

    fn long(
        &mut self,
        spec: &GetoptSpec,
        text: &str,
        next: &mut dyn FnMut() -> Option<String>,
    ) -> Result<(), Stop> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let known = spec.long.iter().find(|(long, _)| *long == name);
        let flag = known.ok_or_else(|| Stop::mistake(format!("--{name} is not supported")))?.1;
        let value = match (spec.takes_value(flag), value) {
            (Some(true), None) => next().ok_or_else(|| missing(&format!("--{name}")))?,
            (_, value) => value.unwrap_or_default(),
        };
        self.flags.push((flag, value));
        Ok(())
    }

    /// `-kc10` is `-k -c 10`.
    fn short(
        &mut self,
        spec: &GetoptSpec,
        text: &str,
        next: &mut dyn FnMut() -> Option<String>,
    ) -> Result<(), Stop> {
        for (at, flag) in text.char_indices() {
            match spec.takes_value(flag) {
                None => return Err(Stop::mistake(format!("-{flag} is not supported"))),
                Some(false) => self.flags.push((flag, String::new())),
                Some(true) => {
                    let rest = &text[at + flag.len_utf8()..];
                    let value = match rest.is_empty() {
                        true => next().ok_or_else(|| missing(&format!("-{flag}")))?,
                        false => rest.to_owned(),
                    };
                    self.flags.push((flag, value));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a flag was given.
    pub(super) fn has(&self, flag: char) -> bool {
        self.flags.iter().any(|(given, _)| *given == flag)
    }

    /// All values of a flag.
    pub(super) fn all(&self, flag: char) -> impl Iterator<Item = &str> {
        let given = self.flags.iter().filter(move |(given, _)| *given == flag);
        given.map(|(_, value)| value.as_str())
    }

    /// The last value of a flag.
    pub(super) fn value(&self, flag: char) -> Option<&str> {
        self.all(flag).last()
    }

    /// The last value of a flag, parsed by `read`.
    pub(super) fn parsed<T>(
        &self,
        flag: char,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Stop> {
        let Some(value) = self.value(flag) else { return Ok(None) };
        let value = read(value);
        let wrong =
            || Stop::mistake(format!("-{flag}: {} is invalid", self.value(flag).unwrap_or("")));
        value.ok_or_else(wrong).map(Some)
    }

    /// The only word that is not a flag.
    pub(super) fn url(&self) -> Result<&str, Stop> {
        match self.words.as_slice() {
            [url] => Ok(url),
            [] => Err(Stop::mistake("the URL is missing")),
            [_, second, ..] => Err(Stop::mistake(format!("{second}: one URL is enough"))),
        }
    }
}

impl GetoptSpec {
    /// Whether a flag takes a value; `None` for one that does not exist.
    fn takes_value(&self, flag: char) -> Option<bool> {
        let at = self.short.find(flag).filter(|_| flag != ':')?;
        Some(self.short[at + flag.len_utf8()..].starts_with(':'))
    }
}

fn missing(flag: &str) -> Stop {
    Stop::mistake(format!("{flag} needs a value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPELLING: GetoptSpec =
        GetoptSpec { short: "kc:H:", long: &[("clients", 'c'), ("keep", 'k')] };

    fn read(words: &[&str]) -> Result<GetoptArgs, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        GetoptArgs::read(&SPELLING, &words).map_err(|Stop(_, why)| why)
    }

    #[test]
    fn flags_may_be_joined_and_their_values_too() {
        for words in
            [&["-kc10", "u"][..], &["u", "-k", "-c", "10"], &["--keep", "--clients=10", "u"]]
        {
            let flags = read(words).expect("they are flags");
            assert!(flags.has('k'));
            assert_eq!((flags.value('c'), flags.url().ok()), (Some("10"), Some("u")));
        }
        let flags = read(&["-Ha: b", "-H", "c: d", "u"]).expect("they are flags");
        assert_eq!(flags.all('H').collect::<Vec<_>>(), ["a: b", "c: d"]);
    }

    #[test]
    fn unknown_flags_are_rejected() {
        for words in [&["-x"][..], &["--none"], &["-c"], &["-:"]] {
            assert!(read(words).is_err(), "{words:?}");
        }
        assert!(read(&["a", "b"]).expect("words").url().is_err());
    }
}
