//! Access restrictions of the `.htaccess` files below a root, as lines of `outboard.toml`.
//!
//! Run at start and by `outboard check`, so that files which Apache protected are not exposed
//! unnoticed. Invariants: the search is bounded in files, depth and time; restrictions that have no
//! equivalent are listed instead of guessed.

mod expression;

use crate::checked::Deny;
use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ENTRIES_MAX: usize = 50_000;
const DEPTH_MAX: usize = 16;
const FOUND_MAX: usize = 1_000;
const FILE_MAX_BYTES: u64 = 64 << 10;
const SEARCH_MAX: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Htaccess {
    /// Number of files found.
    pub files: usize,
    /// Whether the search was completed.
    pub is_whole: bool,
    /// Values of `deny`.
    pub deny: BTreeSet<String>,
    /// Values of `no_php_in`.
    pub no_php_in: BTreeSet<String>,
    /// Files with restrictions that need manual review; paths below the root.
    pub look_at: BTreeSet<String>,
}

impl Htaccess {
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
                // Patterns cannot contain a name that is not UTF-8.
                let Some(name) = name.to_str() else { continue };
                match entry.file_type() {
                    Ok(kind) if kind.is_file() && name == ".htaccess" => {
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

    /// The number of files, as a sentence.
    pub fn summary(&self) -> String {
        let (at_least, s, are) = match (self.is_whole, self.files) {
            (false, _) => ("at least ", "s", "are"),
            (true, 1) => ("", "", "is"),
            (true, _) => ("", "s", "are"),
        };
        format!("{at_least}{} .htaccess file{s} in the root {are} ignored", self.files)
    }

    /// The lines that the configuration does not contain yet.
    pub fn lines_beside(&self, present: &Deny) -> Vec<String> {
        let sample = |pattern: &str| pattern.replace("**", "x").replace(['*', '?'], "x");
        let is_denied = |pattern: &&String| {
            present.denies(format!("/{}", sample(pattern).trim_start_matches('/')).as_bytes())
        };
        let runs_nothing = |directory: &&String| {
            present.forbids_script(format!("{}/x.php", sample(directory)).as_bytes())
        };
        let deny: Vec<_> = self.deny.iter().filter(|pattern| !is_denied(pattern)).collect();
        let directories: Vec<_> =
            self.no_php_in.iter().filter(|directory| !runs_nothing(directory)).collect();
        let line = |key: &str, values: Vec<&String>| format!("{key} = {values:?}");
        let mut lines = Vec::new();
        if !deny.is_empty() {
            lines.push(line("deny", deny));
        }
        if !directories.is_empty() {
            lines.push(line("no_php_in", directories));
        }
        lines
    }

    fn take(&mut self, path: &PathBuf, directory: &str) {
        let mut bytes = Vec::new();
        let read =
            File::open(path).and_then(|file| file.take(FILE_MAX_BYTES).read_to_end(&mut bytes));
        let mut reader = Reader { all: self, directory, within: Vec::new(), condition: false };
        match read {
            Ok(_) => reader.read(&String::from_utf8_lossy(&bytes)),
            Err(_) => reader.look_at(),
        }
    }
}

/// Scope of a section of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Section {
    /// The same as the enclosing section.
    Same,
    /// File names, as patterns without a directory.
    Names(Vec<String>),
    /// Methods and other scopes without an equivalent.
    Other,
}

/// Reader of one file.
struct Reader<'a> {
    all: &'a mut Htaccess,
    /// Its directory, without a trailing slash.
    directory: &'a str,
    within: Vec<Section>,
    /// Whether a RewriteCond precedes the next RewriteRule.
    condition: bool,
}

impl Reader<'_> {
    fn read(&mut self, text: &str) {
        for line in text.replace("\\\n", " ").lines() {
            let line = line.trim();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.first() {
                None => {}
                Some(word) if word.starts_with('#') => {}
                Some(word) if word.starts_with("</") => drop(self.within.pop()),
                Some(word) if word.starts_with('<') => self.open(line),
                Some(_) => self.directive(&words),
            }
        }
    }

    fn open(&mut self, line: &str) {
        let inner = line.trim_start_matches('<').trim_end_matches('>').trim();
        let (kind, argument) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
        let argument = argument.trim();
        let quoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        let section = match kind.to_ascii_lowercase().as_str() {
            "filesmatch" => expression::patterns(&quoted(argument), "").map(Section::Names),
            "files" => match argument.strip_prefix('~') {
                Some(expression) => {
                    expression::patterns(&quoted(expression), "").map(Section::Names)
                }
                None => Some(Section::Names(vec![quoted(argument)])),
            },
            "ifmodule" | "ifversion" | "ifdefine" | "requireall" | "requireany" => {
                Some(Section::Same)
            }
            _ => None,
        };
        self.within.push(section.unwrap_or(Section::Other));
    }

    fn directive(&mut self, words: &[&str]) {
        let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let is_php = |words: &[&str]| words.iter().any(|word| word.contains("php"));
        match lower[..] {
            ["require", "all", "denied"] | ["deny", "from", "all"] => self.denies(),
            ["require", "all", "granted"] | ["allow", "from", "all"] => self.grants(),
            ["require", ..] | ["deny", "from", ..] => self.look_at(),
            ["php_flag" | "php_admin_flag" | "php_value", "engine", "off" | "0"] => {
                self.runs_nothing()
            }
            ["removehandler" | "removetype", ref of @ ..] if is_php(of) => self.runs_nothing(),
            ["sethandler", "none" | "default-handler" | "text/plain"] => self.runs_nothing(),
            ["addtype" | "addhandler", "text/plain" | "cgi-script", ref of @ ..] if is_php(of) => {
                self.runs_nothing();
            }
            ["forcetype", "text/plain"] => self.runs_nothing(),
            ["rewritecond", ..] => self.condition = true,
            ["rewriterule", ..] => self.rule(words),
            ["redirectmatch", "403" | "404" | "410", _] => {
                match expression::patterns(words[2].trim_matches('"'), "") {
                    Some(patterns) => self.add(patterns),
                    None => self.look_at(),
                }
            }
            _ => {}
        }
    }

    /// `RewriteRule pattern - [F]`.
    fn rule(&mut self, words: &[&str]) {
        let has_condition = std::mem::take(&mut self.condition);
        let [_, pattern, _, flags, ..] = words else { return };
        let flags = flags.trim_matches(['[', ']']).to_ascii_lowercase();
        let mut flags = flags.split(',');
        if !flags.any(|flag| matches!(flag, "f" | "forbidden" | "g" | "gone" | "r=403" | "r=404")) {
            return;
        }
        let pattern = pattern.trim_matches('"');
        let patterns = expression::patterns(pattern, self.directory);
        match patterns.filter(|_| !has_condition && self.place() == Some(&Section::Same)) {
            Some(patterns) => self.add(patterns),
            None => self.look_at(),
        }
    }

    /// Rejects a pattern that would deny the whole root.
    fn add(&mut self, patterns: Vec<String>) {
        if patterns.iter().any(|pattern| pattern.trim_matches(['/', '*', '?']).is_empty()) {
            return self.look_at();
        }
        self.all.deny.extend(patterns);
    }

    /// The section in effect; `None` in one without an equivalent.
    fn place(&self) -> Option<&Section> {
        if self.within.contains(&Section::Other) {
            return None;
        }
        let names = self.within.iter().rev().find(|section| **section != Section::Same);
        Some(names.unwrap_or(&Section::Same))
    }

    fn denies(&mut self) {
        match self.place().cloned() {
            None => self.look_at(),
            Some(Section::Names(names)) => {
                if names.iter().all(|name| is_php(name)) {
                    return self.runs_nothing();
                }
                // Dot-files are not served anyway.
                let names = names.iter().map(|name| name.trim_start_matches('/'));
                let names = names.filter(|name| !name.starts_with('.'));
                self.add(names.flat_map(|name| below(self.directory, name)).collect());
            }
            Some(_) => self.add(vec![format!("{}/", self.directory)]),
        }
    }

    fn runs_nothing(&mut self) {
        match self.place() {
            None => self.look_at(),
            // In the root itself this would disable the application.
            Some(_) if self.directory.is_empty() => self.look_at(),
            Some(_) => drop(self.all.no_php_in.insert(self.directory.to_owned())),
        }
    }

    /// Grants access to a part of what is denied.
    fn grants(&mut self) {
        if self.place() != Some(&Section::Same) {
            self.look_at();
        }
    }

    fn look_at(&mut self) {
        self.all.look_at.insert(format!("{}/.htaccess", self.directory));
    }
}

fn is_php(name: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    name.contains('*') && (end.starts_with("ph") || end == "php*")
}

/// Patterns of a name anywhere below a directory.
fn below(directory: &str, name: &str) -> Vec<String> {
    match (directory, name.strip_prefix('*')) {
        ("", _) => vec![name.to_owned()],
        (_, Some(end)) => vec![format!("{directory}/**{end}")],
        _ => vec![format!("{directory}/{name}"), format!("{directory}/**/{name}")],
    }
}

#[cfg(test)]
mod tests;
