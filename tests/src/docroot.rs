//! A document root made from a folder of fixtures.

use crate::page::{repository, trees};
use crate::scratch::{copy_tree, link_tree, open_to_all};
use crate::{App, Scratch};
use std::fs;
use std::path::{Path, PathBuf};

/// A copy of `tests/fixtures/SUBJECT`, of the tests or of a tree of its own, in a scratch folder.
#[derive(Debug)]
pub struct Docroot {
    scratch: Scratch,
    root: PathBuf,
}

impl Docroot {
    /// Copies the fixtures of a subject.
    pub fn of(subject: &str) -> Docroot {
        let tests =
            trees().into_iter().map(|tree| tree.join("tests")).chain([repository().join("tests")]);
        let fixtures =
            tests.map(|tests| tests.join("fixtures").join(subject)).find(|path| path.is_dir());
        Docroot::copy(&fixtures.unwrap_or_else(|| panic!("there are no fixtures {subject}")))
    }

    /// Copies any folder, symbolic links followed.
    pub fn copy(source: &Path) -> Docroot {
        let scratch = Scratch::new("docroot");
        let root = scratch.path().join("www");
        copy_tree(source, &root)
            .unwrap_or_else(|error| panic!("cannot copy {}: {error}", source.display()));
        open_to_all(&root);
        Docroot { scratch, root }
    }

    /// The files of an installed package, symbolic links followed; they must not be written to.
    pub fn package(source: &Path) -> Docroot {
        let scratch = Scratch::new("docroot");
        let root = scratch.path().join("www");
        link_tree(source, &root)
            .unwrap_or_else(|error| panic!("cannot link {}: {error}", source.display()));
        open_to_all(&root);
        Docroot { scratch, root }
    }

    /// Puts a file there instead of what was there; never writes through a link into a package.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(name);
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
        // It need not have been there.
        let _ = fs::remove_file(&path);
        fs::write(&path, content)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }

    /// Makes a folder there that every user may write to.
    pub fn writable(&self, name: &str) -> PathBuf {
        let path = self.root.join(name);
        fs::create_dir_all(&path)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        open_to_all(&path);
        path
    }

    /// The document root.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The folder above it, which no URL leads to.
    pub fn beside(&self) -> &Scratch {
        &self.scratch
    }

    /// The application in it.
    pub fn app(&self) -> App {
        App::at(&self.root)
    }
}
