//! The `.htaccess` files below a root that restrict access, for the error log and `outboard check`.
//!
//! Their restrictions are honored when a file is looked up (`outboard_static_files::Htaccess`); this search
//! only names them. Invariant: it is bounded in files, depth and time.

use outboard_static_files::{HTACCESS_MAX_BYTES, Htaccess};
use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

const ENTRIES_MAX: usize = 50_000;
const DEPTH_MAX: usize = 16;
const FOUND_MAX: usize = 1_000;
const SEARCH_MAX: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HtaccessFiles {
    /// Number of files found.
    pub files: usize,
    /// Whether the search was completed.
    pub is_whole: bool,
    /// Files that deny something; paths below the root.
    pub restricting: BTreeSet<String>,
    /// Lines that have no effect here, such as lists of blocked clients: `/x/.htaccess:3: Deny from 1.2.3.4`.
    pub not_applied: BTreeSet<String>,
}

impl HtaccessFiles {
    /// Searches a root; `None` if there is no such file.
    pub fn below(root: &Path) -> Option<Self> {
        let mut all = Self { is_whole: true, ..Self::default() };
        let until = Instant::now() + SEARCH_MAX;
        let mut entries_left = ENTRIES_MAX;
        // Breadth first: files near the root are found first.
        let mut directories = VecDeque::from([(root.to_owned(), String::new(), 0)]);
        while let Some((directory, url, depth)) = directories.pop_front() {
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                if entries_left == 0 || all.files == FOUND_MAX || Instant::now() > until {
                    all.is_whole = false;
                    return Some(all).filter(|all| all.files > 0);
                }
                entries_left -= 1;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                match entry.file_type() {
                    Ok(kind) if !kind.is_dir() && name == ".htaccess" => {
                        all.files += 1;
                        all.take(&entry.path(), &url);
                    }
                    Ok(kind) if kind.is_dir() && !name.starts_with('.') && depth < DEPTH_MAX => {
                        directories.push_back((entry.path(), format!("{url}/{name}"), depth + 1));
                    }
                    _ => {}
                }
            }
        }
        Some(all).filter(|all| all.files > 0)
    }

    /// Whether an operator should know of them.
    pub fn is_notable(&self) -> bool {
        !self.restricting.is_empty() || !self.not_applied.is_empty()
    }

    /// What they are, as a sentence; `is_honored` is the app's `static.htaccess`.
    pub fn summary(&self, is_honored: bool) -> String {
        let at_least = if self.is_whole { "" } else { "at least " };
        let s = if self.files == 1 { "" } else { "s" };
        let effect = match is_honored {
            true => "what they deny is denied, their other directives are ignored",
            false => "they are ignored (static.htaccess = false)",
        };
        format!(
            "{at_least}{} .htaccess file{s} in the root, of which {} restrict{} access: {effect}",
            self.files,
            self.restricting.len(),
            if self.restricting.len() == 1 { "s" } else { "" }
        )
    }

    fn take(&mut self, path: &Path, directory: &str) {
        let mut text = Vec::new();
        let most = HTACCESS_MAX_BYTES as u64 + 1;
        let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut text));
        let url = format!("{directory}/.htaccess");
        let found = match read {
            Ok(_) => Htaccess::read(&text, directory.is_empty()),
            Err(_) => {
                self.restricting.insert(url);
                return;
            }
        };
        let lines = found.not_applied.iter().map(|(line, text)| format!("{url}:{line}: {text}"));
        self.not_applied.extend(lines);
        if found.restricts() {
            self.restricting.insert(url);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_of_a_root_is_bounded() {
        let root = std::env::temp_dir().join(format!("outboard-htaccess-{}", std::process::id()));
        for directory in ["data", "up/in", "deep/er"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join("data/.htaccess"), "Require all denied\n").unwrap();
        fs::write(root.join("up/.htaccess"), "# x\nDeny from 1.2.3.4\n").unwrap();
        fs::write(root.join(".htaccess"), "RewriteEngine on\n").unwrap();
        // A link in a circle is not followed.
        std::os::unix::fs::symlink(&root, root.join("deep/er/round")).unwrap();
        let found = HtaccessFiles::below(&root);
        let none = HtaccessFiles::below(&root.join("deep"));
        fs::remove_dir_all(&root).unwrap();
        let found = found.unwrap();
        assert_eq!((found.files, found.is_whole, none), (3, true, None));
        assert!(found.restricting.iter().eq(["/data/.htaccess"]), "{found:?}");
        assert!(found.not_applied.iter().eq(["/up/.htaccess:2: Deny from 1.2.3.4"]), "{found:?}");
    }
}
