//! A page of the documentation: its fenced blocks, so that a test runs what the page says and the
//! two cannot part.

use std::fs;
use std::path::{Path, PathBuf};

/// A fenced block (CommonMark 4.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The page, relative to the repository.
    pub page: PathBuf,
    /// The line of the opening fence, counted from 1.
    pub line: usize,
    /// The heading above it, without the signs of its level.
    pub heading: String,
    /// The file that the line before it names: `` `public/index.php`: ``.
    pub file: Option<String>,
    /// The first word behind the opening fence: `sh`, `toml`, `php`.
    pub language: String,
    /// What stands between the fences.
    pub text: String,
}

impl Block {
    /// Where it is, for messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.page.display(), self.line)
    }
}

/// The repository that the tests are in.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("it is there")
}

/// Directories at the top of the repository with documentation and examples of their own.
pub fn trees() -> Vec<PathBuf> {
    let root = repository();
    let mut found: Vec<PathBuf> = entries(&root, "")
        .map(|name| root.join(name))
        .filter(|tree| tree.join("docs").is_dir() && tree.join("examples").is_dir())
        .collect();
    found.sort();
    found
}

/// Every page that tells people what to type: guides, references, READMEs.
pub fn pages() -> Vec<PathBuf> {
    let root = repository();
    let mut found = vec![PathBuf::from("README.md"), PathBuf::from("CONTRIBUTING.md")];
    for folder in ["docs/guide", "docs/guide/answers", "docs/reference"] {
        found.extend(
            entries(&root, folder).filter(|path| path.extension().is_some_and(|e| e == "md")),
        );
    }
    let mut examples = vec![PathBuf::from("examples")];
    for tree in trees().iter().filter_map(|tree| tree.file_name()).map(Path::new) {
        let docs = tree.join("docs").to_string_lossy().into_owned();
        found.extend(
            entries(&root, &docs).filter(|path| path.extension().is_some_and(|e| e == "md")),
        );
        examples.push(tree.join("examples"));
    }
    for folder in examples.iter().filter(|folder| root.join(folder).is_dir()) {
        let folder = folder.to_string_lossy();
        found.extend(entries(&root, &folder).map(|example| example.join("README.md")));
    }
    found.retain(|path| root.join(path).is_file());
    found.sort();
    found
}

fn entries(root: &Path, folder: &str) -> impl Iterator<Item = PathBuf> {
    let list = fs::read_dir(root.join(folder)).expect("a folder of the repository");
    let folder = PathBuf::from(folder);
    list.map(move |entry| folder.join(entry.expect("a readable entry").file_name()))
}

/// The blocks of a page, in order.
pub fn blocks(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(repository().join(page)).expect("a page of the repository");
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let (mut heading, mut before) = ("", "");
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(words)) => {
                open = Some(Block {
                    page: page.to_owned(),
                    line: number + 1,
                    heading: heading.to_owned(),
                    file: named(before),
                    language: words.split_whitespace().next().unwrap_or("").to_owned(),
                    text: String::new(),
                });
                before = "";
            }
            (Some(block), Some(rest)) => {
                assert_eq!(rest.trim(), "", "{}: text behind a closing fence", block.place());
                blocks.extend(open.take());
            }
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) if line.starts_with('#') => heading = line.trim_start_matches('#').trim(),
            (None, None) if !line.is_empty() => before = line,
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a fence is not closed", page.display());
    blocks
}

/// The name on a line of its own: `` `public/index.php`: ``.
fn named(line: &str) -> Option<String> {
    let name = line.strip_prefix('`')?.strip_suffix("`:")?;
    Some(name.to_owned()).filter(|name| !name.contains(['`', ' ']))
}

/// The blocks of all pages in one language.
pub fn blocks_in(language: &str) -> Vec<Block> {
    let all = pages().into_iter().flat_map(|page| blocks(&page));
    all.filter(|block| block.language == language).collect()
}
