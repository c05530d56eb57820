//! The PHP interpreter and its settings.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw::{ControlGroup, Php};
use crate::scalar::{Fault, FileExtension};
use std::path::{Path, PathBuf};

pub(super) fn php(written: &Php, place: &[&str], context: &mut Context<'_>) -> Php {
    let mut php = written.clone();
    let at = |key: &'static str| [place, &[key]].concat();
    if php.version.is_some() && php.host_binary.is_some() {
        let fault = Fault::new("`version` and `host_binary` exclude each other");
        context.key(&at("version"), Kind::Conflict, fault.hint("remove one of them"));
    }
    type Find<'a> = fn(&mut Context<'a>, &[&str], &Path) -> PathBuf;
    let paths: [(_, _, Find<'_>); 4] = [
        ("host_binary", &mut php.host_binary, Context::program),
        ("ini_file", &mut php.ini_file, Context::file),
        ("ini_scan_dir", &mut php.ini_scan_dir, Context::directory),
        ("preload", &mut php.preload, Context::file),
    ];
    for (key, path, find) in paths {
        if let Some(path) = path {
            *path = find(context, &at(key), path);
        }
    }
    for extension in &mut php.extensions {
        *extension = format!(".{}", FileExtension::bare(extension));
    }
    php.control_group.take_if(|group| *group == ControlGroup::default());
    php
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use std::path::Path;

    fn parsed(php: &str) -> Result<Config, String> {
        let text = format!("[app.site]\nroot = \"src\"\n[app.site.php]\n{php}\n");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("outboard.toml");
        Config::parse(&text, &path).map_err(|errors| errors.to_string())
    }

    #[test]
    fn extensions_have_a_dot_and_paths_are_absolute() {
        let php = parsed("extensions = [\"php\", \".phtml\"]\nini_file = \"Cargo.toml\"").unwrap();
        let php = &php.apps[0].php;
        assert_eq!(php.extensions, [".php", ".phtml"]);
        assert!(php.ini_file.as_ref().unwrap().is_absolute());
        let missing = parsed("preload = \"nowhere.php\"").unwrap_err();
        assert!(missing.contains("there is no file"), "{missing}");
    }

    #[test]
    fn a_control_group_without_limits_is_none() {
        assert_eq!(parsed("control_group = {}").unwrap().apps[0].php.control_group, None);
        let limited = parsed("control_group.cpu_weight = 10").unwrap();
        assert_eq!(limited.apps[0].php.control_group.as_ref().unwrap().cpu_weight, Some(10));
    }

    #[test]
    fn a_version_excludes_a_binary() {
        let error = parsed("version = \"8.2\"\nhost_binary = \"Cargo.toml\"").unwrap_err();
        assert!(error.contains("exclude each other"), "{error}");
    }
}
