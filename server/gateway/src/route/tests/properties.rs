//! Random trees, patterns, rewrites and spellings: a denied path is neither run nor sent.

use super::{MULTISITE, Site};
use proptest::prelude::*;

/// Whether a glob matches the path. Written without regular expressions.
fn glob_matches(glob: &[u8], path: &[u8]) -> bool {
    match glob {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=path.len()).any(|at| glob_matches(rest, &path[at..])),
        [b'*', rest @ ..] => {
            let segment = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
            (0..=segment).any(|at| glob_matches(rest, &path[at..]))
        }
        [b'?', rest @ ..] => {
            path.first().is_some_and(|&byte| byte != b'/') && glob_matches(rest, &path[1..])
        }
        [byte, rest @ ..] => path.first() == Some(byte) && glob_matches(rest, &path[1..]),
    }
}

/// Whether the pattern matches the file, or a directory above it.
fn is_denied(pattern: &str, file: &str) -> bool {
    let (pattern, file) = (pattern.to_lowercase(), file.to_lowercase());
    let glob = pattern.trim_end_matches('/');
    // The path starts with an empty segment.
    let mut starts = vec![0];
    if !glob.starts_with('/') {
        starts.extend(file.match_indices('/').map(|(at, _)| at + 1));
    }
    let is_directory = pattern.ends_with('/');
    let ends = file.match_indices('/').map(|(at, _)| at);
    let ends: Vec<usize> = ends.chain((!is_directory).then_some(file.len())).collect();
    let mut spans = starts.iter().flat_map(|&start| ends.iter().map(move |&end| (start, end)));
    spans.any(|(start, end)| {
        start <= end && glob_matches(glob.as_bytes(), &file.as_bytes()[start..end])
    })
}

fn segment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "B", "up", "x.php", "é"])
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "x.php",
        "X.PHP",
        "index.php",
        "index.html",
        "y.txt",
        "Y.txt",
        "y.txt.gz",
        "z.css",
        "up",
    ])
}

fn tree() -> impl Strategy<Value = Vec<String>> {
    let file = (prop::collection::vec(segment(), 0..3), name());
    prop::collection::vec(file, 1..12).prop_map(|files| {
        let mut paths: Vec<String> = Vec::new();
        for (directories, name) in files {
            let path = format!("/{}/{name}", directories.join("/")).replace("//", "/");
            let is_new = |other: &String| {
                !other.starts_with(&format!("{path}/")) && !path.starts_with(&format!("{other}/"))
            };
            if paths.iter().all(|other| is_new(other) && *other != path) {
                paths.push(path);
            }
        }
        paths
    })
}

fn pattern() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "UP", "x.php", "*.php", "**.php", "*.txt", "*", "**", "index.*", "y.t?t", "É",
    ]);
    let pieces = prop::collection::vec(piece, 1..4);
    (any::<bool>(), pieces, any::<bool>()).prop_map(|(is_rooted, pieces, is_directory)| {
        let (start, end) = (if is_rooted { "/" } else { "" }, if is_directory { "/" } else { "" });
        // A pattern that matches everything would leave nothing to test.
        let pattern = format!("{start}{}{end}", pieces.join("/"));
        match pattern.trim_matches(['/', '*']) {
            "" => "/a/".to_owned(),
            _ => pattern,
        }
    })
}

/// Another spelling of a path.
fn spelled(path: &str, changes: &[(u8, usize)]) -> Vec<u8> {
    let mut target = path.as_bytes().to_vec();
    for &(change, at) in changes {
        let at = at % (target.len() + 1);
        let slash = target[..at].iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        match change {
            0 => drop(target.splice(slash..slash, *b"/")),
            1 => drop(target.splice(slash..slash, *b"/.")),
            2 => drop(target.splice(slash..slash, *b"/up/..")),
            3 if at < target.len() && target[at] != b'%' => {
                let encoded = format!("%{:02x}", target[at]);
                drop(target.splice(at..=at, encoded.into_bytes()));
            }
            4 => target.push(b'/'),
            5 => target.extend_from_slice(b"/info.css"),
            6 => drop(target.splice(0..0, *b"/site")),
            7 => drop(target.splice(0..0, *b"/r")),
            8 => drop(target.splice(slash..slash, *b"/%2e")),
            9 => target.truncate(slash + 1),
            10 if at < target.len() => {
                target[at] ^= if target[at].is_ascii_alphabetic() { 32 } else { 0 }
            }
            11 => drop(target.splice(at..at, *b"%00")),
            12 => target.extend_from_slice(b";a=b"),
            13 => target.truncate(slash.max(1)),
            14 => drop(target.splice(slash..slash, *b"%2F")),
            _ => target.extend_from_slice(b"?q"),
        }
        if !target.starts_with(b"/") {
            target.insert(0, b'/');
        }
    }
    target
}

const RULES: [&str; 4] = [
    "",
    MULTISITE,
    "[[app.site.rewrite]]\nmatch = '^/r(.*)$'\nto = \"/$1\"\nlast = false\n\
     [[app.site.rewrite]]\nmatch = '^/site(.*)$'\nto = \"/a/$1\"\n",
    "[[app.site.rewrite]]\nmatch = '^(/.*)/info.css$'\nto = \"$1\"\nwhen = \"missing\"\n",
];

proptest! {
    #[test]
    fn nothing_denied_is_run_or_sent(
        files in tree(),
        patterns in prop::collection::vec(pattern(), 1..4),
        no_php in prop::collection::vec(pattern(), 0..2),
        rules in prop::sample::select(RULES.to_vec()),
        targets in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec((0u8..16, 0usize..40), 0..5)),
            1..40,
        ),
    ) {
        let keys = format!("deny = {patterns:?}\nno_php_in = {no_php:?}\n{rules}");
        let site = Site::new(&files, &keys);
        for (file, changes) in targets {
            let target = spelled(&files[file.index(files.len())], &changes);
            let Some(reached) = site.reached(&target) else { continue };
            let shown = target.escape_ascii();
            for pattern in &patterns {
                prop_assert!(!is_denied(pattern, &reached), "{shown} leads to {reached}, {pattern}");
            }
            let is_script = reached.to_ascii_lowercase().ends_with(".php");
            for directory in no_php.iter().filter(|_| is_script) {
                let below = format!("{}/", directory.trim_end_matches('/'));
                prop_assert!(!is_denied(&below, &reached), "{shown} runs {reached}, {directory}");
            }
        }
    }

    #[test]
    fn files_that_no_pattern_matches_are_served(
        files in tree(),
        patterns in prop::collection::vec(pattern(), 0..3),
    ) {
        let site = Site::new(&files, &format!("deny = {patterns:?}"));
        for file in files.iter().filter(|file| !file.ends_with(".gz")) {
            let is_denied = patterns.iter().any(|pattern| is_denied(pattern, file));
            let reached = site.reached(file.as_bytes());
            prop_assert_eq!(reached, (!is_denied).then(|| file.clone()), "{}", file);
        }
    }
}
