//! [`Variants`]: the codings that a file without siblings is compressed with on demand, as one thread
//! knows them.
//!
//! Part of an [`crate::Entry`]. Invariant: it holds no bytes, only the way to those that
//! [`CompressedFiles`] keeps, so that an entry that nobody requests does not hold its memory.

use std::cell::{OnceCell, RefCell};
use std::sync::{Arc, Weak};

use outboard_http_semantics::Coding;

use crate::compressed_files::{CompressedFile, CompressedFiles, Key};
use crate::form::Form;

/// See the module.
#[derive(Debug)]
pub(crate) struct Variants {
    files: Arc<CompressedFiles>,
    /// By the number of the coding.
    all: [Variant; Coding::ALL.len()],
}

/// The file in one coding.
#[derive(Debug, Default)]
pub(crate) struct Variant {
    form: OnceCell<Form>,
    kept: RefCell<Weak<CompressedFile>>,
}

impl Variants {
    pub(crate) fn new(files: &Arc<CompressedFiles>) -> Self {
        Self { files: Arc::clone(files), all: Default::default() }
    }

    pub(crate) fn files(&self) -> &Arc<CompressedFiles> {
        &self.files
    }

    /// The form of the file in this coding, which `render` makes once.
    pub(crate) fn form(&self, coding: Coding, render: impl FnOnce() -> Form) -> &Form {
        self.of(coding).form.get_or_init(render)
    }

    /// The compressed file, if it is kept.
    pub(crate) fn find(&self, key: &Key) -> Option<Arc<CompressedFile>> {
        let kept = &self.of(key.coding).kept;
        let known = kept.borrow().upgrade();
        let found = known.or_else(|| {
            let found = self.files.get(key)?;
            kept.replace(Arc::downgrade(&found));
            Some(found)
        })?;
        found.mark_as_used();
        Some(found)
    }

    fn of(&self, coding: Coding) -> &Variant {
        &self.all[coding as usize]
    }
}

#[cfg(test)]
mod tests;
