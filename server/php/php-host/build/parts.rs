//! Parts of the host that are directories of their own at the top of the tree: one for each feature of the crate, with
//! its name. A part runs programs that start a server themselves.
//!
//! Called by `build.rs`. `NAME/sapi` has the part's C, and `NAME.h` its hooks; `NAME/runtime` its PHP, and `start` there
//! names the files that every program loads, in their order; `NAME/host` its Rust, which `main.rs` names.
//! Invariant: without features the host has no file of a part.

use std::path::{Path, PathBuf};

/// The top of the tree, from the crate.
pub(crate) const TREE: &str = "../../..";

/// Functions without a namespace are a source of their own.
const GLOBAL: &str = "global";

/// See the module.
pub(crate) struct Part {
    name: String,
    pub(crate) directory: PathBuf,
}

/// The parts whose features are on.
pub(crate) fn find() -> Vec<Part> {
    let features = std::env::vars()
        .filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase()));
    let parts = features.map(|name| Part { directory: Path::new(TREE).join(&name), name });
    parts.filter(|part| part.directory.is_dir()).collect()
}

impl Part {
    /// The line of C that declares its hooks.
    pub(crate) fn include(&self) -> String {
        format!("#include \"{0}/sapi/{0}.h\"\n", self.name)
    }

    /// Arrays of its PHP: what every program loads at its start, and the files that a program loads when it uses one of
    /// their classes, with a table of them by name.
    pub(crate) fn runtime(&self, array: fn(&str, &Path, &[&str]) -> String) -> String {
        let (name, directory) = (&self.name, self.directory.join("runtime"));
        let start =
            std::fs::read_to_string(directory.join("start")).expect("the files of the start");
        let start: Vec<&str> = start.lines().collect();
        let mut text = array(&format!("{name}_global"), &directory, &[GLOBAL]);
        text += &array(name, &directory, &start);
        let mut table = String::new();
        for file in later_files(&directory, &start) {
            let array_name = format!("{name}_part_{file}");
            text += &array(&array_name, &directory, &[&file]);
            table += &format!(
                "{{\"{file}\", outboard_{array_name}_php, sizeof(outboard_{array_name}_php) - 1}},"
            );
        }
        text + &format!(
            "static const struct {{ const char *name; const unsigned char *text; size_t len; }} \
             outboard_{name}_parts[] __attribute__((unused)) = {{{table}}};\n"
        )
    }
}

/// The names of the PHP files that are not loaded at the start.
fn later_files(directory: &Path, start: &[&str]) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a readable directory");
    let names = entries.filter_map(|entry| {
        let name = entry.expect("a readable directory").file_name().into_string().ok()?;
        Some(name.strip_suffix(".php")?.to_owned())
    });
    let mut names: Vec<String> =
        names.filter(|name| name != GLOBAL && !start.contains(&name.as_str())).collect();
    names.sort();
    names
}
