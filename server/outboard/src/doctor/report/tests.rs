//! Reports of the PHP host that are cut, repeated or damaged.

use super::*;

const LINE: &str = "0\tglobal\t$a\ta.php:2\t01\t1\t02";

fn report(lines: &[&str]) -> Vec<Snapshot> {
    snapshots(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

#[test]
fn a_line_is_a_place_with_its_value() {
    let all = report(&["begin", LINE, "end"]);
    let (place, entry) = all[0].iter().next().unwrap();
    assert_eq!((place.kind.as_str(), place.name.as_str(), place.number), ("global", "$a", 0));
    assert_eq!(place.declared_at, "a.php:2");
    assert_eq!((entry.depth, entry.value.as_str()), (0, "1"));
    assert_eq!((entry.fingerprint.as_str(), entry.declared.as_str()), ("01", "02"));
}

#[test]
fn places_of_the_same_name_have_numbers() {
    let all = report(&["begin", LINE, LINE, LINE, "end"]);
    let numbers: Vec<usize> = all[0].keys().map(|place| place.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn invalid_lines_are_ignored() {
    for line in ["", "x", "0\tglobal\t$a", "-1\tglobal\t$a\t\t01\t1\t", "0\ta\tb\tc\td\te\tf\tg"] {
        let all = report(&["begin", line, LINE, "end"]);
        assert_eq!((all.len(), all[0].len()), (1, 1), "{line}");
    }
}

#[test]
fn a_snapshot_without_its_end_is_none() {
    assert_eq!(report(&["begin", LINE]).len(), 0);
    assert_eq!(report(&["begin", LINE, "end", "begin", LINE]).len(), 1);
    // What was begun again replaces what has no end.
    let all = report(&["begin", LINE, "begin", "end"]);
    assert_eq!((all.len(), all[0].len()), (1, 0));
    assert_eq!(snapshots("").len(), 0);
}
