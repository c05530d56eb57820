//! The files that a pattern such as `conf.d/*.toml` names.

use crate::disk::{Disk, reason};
use crate::scalar::Fault;
use std::path::{Component, Path, PathBuf};

/// Entries of a directory that are looked at.
const NAMES_MAX: usize = 10_000;
/// Paths that a pattern can match, in each directory level.
const PATHS_MAX: usize = 1_000;

/// The paths in alphabetical order. A path without a wildcard is always part of the result; a
/// directory that a wildcard looks into and that does not exist has no files.
pub(super) fn expand(
    pattern: &str,
    directory: &Path,
    disk: &dyn Disk,
) -> Result<Vec<PathBuf>, Fault> {
    let whole = directory.join(pattern);
    let mut found = vec![PathBuf::new()];
    let mut after_wildcard = false;
    for component in whole.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let name = name.to_string_lossy();
        // The directory of the including file is not part of the pattern.
        let below = found.first().is_some_and(|path| path.starts_with(directory));
        if (below || Path::new(pattern).is_absolute()) && name.contains(['*', '?']) {
            found = matches(&found, &name, disk)?;
            after_wildcard = true;
        } else {
            found.iter_mut().for_each(|path| path.push(&*name));
            // Not every directory that matched a wildcard has the file.
            found.retain(|path| !after_wildcard || disk.look(path).is_ok());
        }
    }
    Ok(found)
}

fn matches(directories: &[PathBuf], name: &str, disk: &dyn Disk) -> Result<Vec<PathBuf>, Fault> {
    let mut found = Vec::new();
    for directory in directories {
        let mut names = match disk.names(directory, NAMES_MAX) {
            Ok(names) => names,
            Err(error) if is_no_directory(&error) => continue,
            Err(error) => {
                let shown = directory.display();
                return Err(Fault::new(format!("`{shown}` cannot be listed: {}", reason(&error))));
            }
        };
        names.retain(|one| (name.starts_with('.') || !one.starts_with('.')) && fits(one, name));
        names.sort();
        found.extend(names.iter().map(|one| directory.join(one)));
        if found.len() > PATHS_MAX {
            return Err(Fault::new(format!("`{name}` matches more than {PATHS_MAX} files")));
        }
    }
    Ok(found)
}

fn is_no_directory(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Whether a name matches a pattern with `*` and `?`, in time that is the product of their lengths.
fn fits(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) =
        (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut of) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(of) {
            Some('*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(c) if *c == '?' || *c == name[at] => {
                at += 1;
                of += 1;
            }
            _ => match &mut star {
                // The last star takes one more character.
                Some((star, taken)) => {
                    *taken += 1;
                    (at, of) = (*taken, *star + 1);
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn wildcards_match_within_a_name() {
        for (name, pattern) in
            [("a.toml", "*.toml"), ("a.toml", "?.toml"), ("ab", "a*b"), ("aXbXb", "a*b"), ("", "*")]
        {
            assert!(fits(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [("a.toml~", "*.toml"), ("ab.toml", "?.toml"), ("a", ""), ("", "?")]
        {
            assert!(!fits(name, pattern), "{name} {pattern}");
        }
    }
}
