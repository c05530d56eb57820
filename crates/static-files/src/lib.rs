//! temporary stand-in
#![allow(missing_docs)]
use std::{
    collections::BTreeMap,
    ops::Range,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    rc::Rc,
};
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
}
#[derive(Debug)]
pub struct RootError(String);
impl std::fmt::Display for RootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
#[derive(Debug, Default)]
pub struct RootOptions {
    pub symlinks: Symlinks,
    pub php_suffixes: Vec<String>,
    pub precompressed: bool,
    pub mime_overrides: BTreeMap<String, String>,
    pub cache_control: Option<String>,
    pub dot_names: Vec<String>,
}
impl RootOptions {
    pub fn for_sendfile() -> Self {
        Self::default()
    }
}
#[derive(Debug, Default)]
pub enum Symlinks {
    Never,
    #[default]
    InsideRoot,
    SameOwner,
    Always,
}
#[derive(Debug)]
pub enum ForbiddenReason {
    DotFile,
    SymlinkEscape,
    Unreadable,
    Other,
}
#[derive(Debug)]
pub struct Entry {
    body: Rc<[u8]>,
}
#[derive(Debug)]
pub enum Lookup {
    File(Rc<Entry>),
    Directory,
    Script,
    NotFound,
    Forbidden(ForbiddenReason),
    Error(std::io::Error),
}
impl Root {
    pub fn open(path: &Path, _o: RootOptions) -> Result<Self, RootError> {
        Ok(Self { path: path.into() })
    }
    pub fn lookup(&self, p: &[u8], _n: u64) -> Lookup {
        let f = self.path.join(String::from_utf8_lossy(&p[1..]).as_ref());
        if f.is_dir() {
            return Lookup::Directory;
        }
        if !f.exists() {
            return Lookup::NotFound;
        }
        if p.ends_with(b".php") {
            return Lookup::Script;
        }
        Lookup::File(Rc::new(Entry { body: std::fs::read(f).unwrap().into() }))
    }
    pub fn split_script<'p>(&self, p: &'p [u8], n: u64) -> Option<(&'p [u8], &'p [u8])> {
        let i = p.windows(5).position(|w| w == b".php/")? + 4;
        matches!(self.lookup(&p[..i], n), Lookup::Script).then_some((&p[..i], &p[i..]))
    }
}
pub struct Conditions<'a> {
    pub is_head: bool,
    pub accept_encoding: Option<&'a [u8]>,
    pub if_match: Option<&'a [u8]>,
    pub if_none_match: Option<&'a [u8]>,
    pub if_modified_since: Option<&'a [u8]>,
    pub if_unmodified_since: Option<&'a [u8]>,
    pub range: Option<&'a [u8]>,
    pub if_range: Option<&'a [u8]>,
}
pub enum Part {
    Memory { bytes: Rc<[u8]>, range: Range<usize> },
    Bytes(Vec<u8>),
    File { file: Rc<OwnedFd>, offset: u64, len: u64 },
}
pub struct Plan {
    pub status: u16,
    pub headers: Vec<(&'static str, Vec<u8>)>,
    pub content_length: u64,
    pub body: Vec<Part>,
}
pub fn plan(e: &Rc<Entry>, _c: &Conditions<'_>) -> Plan {
    let n = e.body.len();
    Plan {
        status: 200,
        headers: vec![("Content-Type", b"text/plain".to_vec())],
        content_length: n as u64,
        body: vec![Part::Memory { bytes: e.body.clone(), range: 0..n }],
    }
}
