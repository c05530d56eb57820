//! The certain differences between two visitors' copies of a page, apart from chance and the clock.
//!
//! Called by the audit with two copies for each visitor, rendered alternately. Words are compared in
//! pairs, so that `3 items` differs from `0 items` even if both numbers occur elsewhere on the page.
//! Invariant: a difference between two copies for the same visitor is noise and is ignored.

use std::collections::HashSet;

type Pair<'a> = [&'a [u8]; 2];

/// The words that only one of two visitors gets, every time.
#[derive(Debug)]
pub struct Difference<'a> {
    only_first: HashSet<Pair<'a>>,
    only_second: HashSet<Pair<'a>>,
    excerpt: Pair<'a>,
}

impl<'a> Difference<'a> {
    /// The difference between the copies of two visitors; `None` if there is only noise.
    pub fn between(first: [&'a [u8]; 2], second: [&'a [u8]; 2]) -> Option<Self> {
        let [one, again] = first.map(pairs);
        let [other, other_again] = second.map(pairs);
        let certain = |mine: &[HashSet<Pair<'a>>; 2], theirs: &[HashSet<Pair<'a>>; 2]| {
            let both = mine[0].intersection(&mine[1]).copied();
            both.filter(|pair| !theirs.iter().any(|set| set.contains(pair))).collect::<HashSet<_>>()
        };
        let (first_sets, second_sets) = ([one, again], [other, other_again]);
        let only_first = certain(&first_sets, &second_sets);
        let only_second = certain(&second_sets, &first_sets);
        let in_order = |body: &'a [u8], set: &HashSet<Pair<'a>>| {
            pairs_in_order(body).find(|pair| set.contains(pair))
        };
        let excerpt =
            in_order(first[0], &only_first).or_else(|| in_order(second[0], &only_second))?;
        Some(Self { only_first, only_second, excerpt })
    }

    /// Whether a third copy agrees with the first visitor's.
    pub fn is_in(&self, copy: &[u8]) -> bool {
        let found = pairs(copy);
        self.only_first.iter().any(|pair| found.contains(pair))
            || (!self.only_second.is_empty()
                && self.only_second.iter().all(|pair| !found.contains(pair)))
    }

    /// Words that only one of them gets, to find the place.
    pub fn excerpt(&self) -> String {
        let [before, word] = self.excerpt.map(String::from_utf8_lossy);
        format!("{before} {word}")
    }
}

fn pairs(body: &[u8]) -> HashSet<Pair<'_>> {
    pairs_in_order(body).collect()
}

/// The words of a text, each with the one before it.
fn pairs_in_order(body: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    let is_of_word =
        |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"_-.@".contains(byte);
    let mut before: &[u8] = b"";
    let words = body.split(move |byte| !is_of_word(byte)).filter(|word| !word.is_empty());
    words.map(move |word| [std::mem::replace(&mut before, word), word])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(first: [&str; 2], second: [&str; 2]) -> Option<String> {
        let bytes = |copies: [&'static str; 2]| copies.map(str::as_bytes);
        let leak = |copies: [&str; 2]| copies.map(|text| &*text.to_owned().leak());
        let (first, second) = (bytes(leak(first)), bytes(leak(second)));
        Difference::between(first, second).map(|difference| difference.excerpt())
    }

    #[test]
    fn noise_is_ignored_and_a_name_is_a_difference() {
        let page = |name: &str, noise: &str| format!("<p>Hello {name}</p><i data={noise}></i>");
        let copies = |name: &str, noises: [&str; 2]| noises.map(|noise| page(name, noise));
        let [a, b] = copies("you", ["n1", "n2"]);
        let [c, d] = copies("you", ["n3", "n4"]);
        assert_eq!(excerpt([&a, &b], [&c, &d]), None);
        let [c, d] = copies("Ann", ["n3", "n4"]);
        assert_eq!(excerpt([&c, &d], [&a, &b]).as_deref(), Some("Hello Ann"));
    }

    #[test]
    fn a_count_differs_though_its_digits_stand_elsewhere() {
        let [full, empty] = ["3 items of 0 and 3", "0 items of 0 and 3"];
        assert_eq!(excerpt([full, full], [empty, empty]).as_deref(), Some(" 3"));
        let longer = "x 3 items of 0 and 3";
        assert!(excerpt([longer, longer], ["x 0 items of 0 and 3"; 2]).is_some());
    }

    #[test]
    fn a_third_copy_is_on_one_side() {
        let (mine, theirs) = (b"hello Ann again".as_slice(), b"hello you again".as_slice());
        let difference = Difference::between([mine, mine], [theirs, theirs]).unwrap();
        assert!(difference.is_in(b"hello Ann once more"));
        assert!(!difference.is_in(theirs));
    }

    #[test]
    fn what_is_missing_for_one_is_a_difference_too() {
        let (less, more) = (b"a b".as_slice(), b"a b c".as_slice());
        let difference = Difference::between([less, less], [more, more]).unwrap();
        assert_eq!(difference.excerpt(), "b c");
        assert!(difference.is_in(less) && !difference.is_in(more));
    }
}
