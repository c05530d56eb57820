//! Configurations of several files: `include`, and `${…}` in values, on the real file system.

use outboard_config::{Config, Diagnostics, Kind};
use std::fs;
use std::path::{Path, PathBuf};

/// A directory with files, removed at the end.
struct Files(PathBuf);

impl Files {
    fn new(test: &str, files: &[(&str, &str)]) -> Self {
        let directory =
            std::env::temp_dir().join(format!("outboard-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        for app in ["a", "b"] {
            fs::create_dir_all(directory.join(app)).unwrap();
        }
        for (name, text) in files {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Files(directory)
    }

    fn load(&self) -> Result<Config, Diagnostics> {
        Config::load(&self.0.join("outboard.toml"))
    }

    #[track_caller]
    fn config(&self) -> Config {
        self.load().unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The only error: its file, line, column and message.
    #[track_caller]
    fn error(&self) -> (Kind, String, usize, usize, String) {
        let all = self.load().expect_err("an error");
        assert_eq!(all.len(), 1, "{all}");
        let error = all.iter().next().unwrap();
        let at = error.position.as_ref().unwrap();
        let file = all.file_of(error).strip_prefix(&self.0).unwrap_or(Path::new("?"));
        let file = file.display().to_string();
        (error.kind, file, at.line, at.column, error.message.clone())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const A: &str = "[app.a]\nroot = \"a\"\nhosts = \"a.test\"\n";
const B: &str = "[app.b]\nroot = \"b\"\nhosts = \"b.test\"\n";

#[test]
fn tables_of_several_files_are_merged() {
    let files = Files::new(
        "merged",
        &[
            (
                "outboard.toml",
                "include = [\"conf.d/*.toml\", \"limits.toml\"]\n[limits]\nbody = 1\n",
            ),
            ("conf.d/10-a.toml", &format!("{A}[[listen]]\naddress = \"127.0.0.1:1\"\n")),
            ("conf.d/20-b.toml", &format!("{B}[[listen]]\naddress = \"127.0.0.1:2\"\n")),
            ("conf.d/.hidden.toml", "nonsense"),
            ("conf.d/b.toml.bak", "nonsense"),
            ("limits.toml", "limits.connections = 7\n"),
        ],
    );
    let config = files.config();
    let names: Vec<&str> = config.apps.iter().map(|app| app.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(config.limits.max_connections, 7);
    assert_eq!(config.listeners.len(), 2);
    assert!(config.listeners[0].address.to_string().ends_with(":1"), "alphabetical order");
    assert_eq!(config.files.len(), 3);
    assert_eq!(config.apps[0].root, files.0.join("a"), "roots are relative to the main file");
}

#[test]
fn a_pattern_without_files_is_valid_and_a_missing_file_is_not() {
    let empty = format!("include = \"none/*.toml\"\n{A}");
    assert!(Files::new("empty", &[("outboard.toml", &empty)]).load().is_ok());
    let missing = format!("include = [\n  \"none.toml\",\n]\n{A}");
    let (kind, file, line, column, message) =
        Files::new("missing", &[("outboard.toml", &missing)]).error();
    assert_eq!((kind, file.as_str(), line, column), (Kind::Path, "outboard.toml", 2, 3));
    assert!(message.contains("none.toml` cannot be read: No such file"), "{message}");
}

#[test]
fn an_error_in_an_included_file_has_its_name_and_line() {
    let files = Files::new(
        "named",
        &[
            ("outboard.toml", "include = \"conf.d/*.toml\"\n"),
            ("conf.d/a.toml", A),
            ("conf.d/b.toml", &format!("# b\n{B}indx = []\n")),
        ],
    );
    let (kind, file, line, column, _) = files.error();
    assert_eq!((kind, file.as_str(), line, column), (Kind::UnknownKey, "conf.d/b.toml", 5, 1));
    let shown = files.load().unwrap_err().to_string();
    assert!(shown.contains("conf.d/b.toml:5:1: unknown key `indx` in [app.b]"), "{shown}");
    assert!(shown.contains("  5 | indx = []"), "{shown}");
}

#[test]
fn syntax_errors_of_all_files_are_reported() {
    let files = Files::new(
        "syntax",
        &[
            ("outboard.toml", &format!("include = \"conf.d/*.toml\"\n{A}")),
            ("conf.d/b.toml", "\nx = = 1\n"),
            ("conf.d/c.toml", "é = [\n"),
        ],
    );
    let shown = files.load().unwrap_err().to_string();
    assert!(shown.contains("conf.d/b.toml:2:"), "{shown}");
    assert!(shown.contains("conf.d/c.toml:1:"), "{shown}");
}

#[test]
fn what_two_files_define_is_an_error_with_both_places() {
    let main = "include = \"conf.d/*.toml\"\nuser = \"x\"\n[limits]\nbody = 1\n";
    let (kind, file, line, _, message) = Files::new(
        "same-app",
        &[("outboard.toml", main), ("conf.d/a.toml", A), ("conf.d/b.toml", A)],
    )
    .error();
    assert_eq!((kind, file.as_str(), line), (Kind::Duplicate, "conf.d/b.toml", 1));
    assert!(message.contains("the app `app.a` is also defined in"), "{message}");
    assert!(message.contains("conf.d/a.toml:1"), "{message}");
    let (_, file, line, column, message) = Files::new(
        "same-key",
        &[("outboard.toml", main), ("conf.d/a.toml", &format!("{A}[limits]\nbody = 2\n"))],
    )
    .error();
    assert_eq!((file.as_str(), line, column), ("conf.d/a.toml", 5, 1));
    assert_eq!(message, "the key `limits.body` is also defined in line 4 of the main file");
}

#[test]
fn includes_that_form_a_cycle_are_rejected() {
    let main = format!("include = \"conf.d/a.toml\"\n{A}");
    let (kind, file, line, ..) = Files::new(
        "cycle",
        &[("outboard.toml", &main), ("conf.d/a.toml", "include = \"../outboard.toml\"\n")],
    )
    .error();
    assert_eq!((kind, file.as_str(), line), (Kind::Duplicate, "conf.d/a.toml", 1));
    let twice = format!("include = [\"b.toml\", \"./b.toml\"]\n{A}");
    let (kind, .., message) =
        Files::new("twice", &[("outboard.toml", &twice), ("b.toml", "")]).error();
    assert_eq!(kind, Kind::Duplicate);
    assert!(message.ends_with("is also included in line 1"), "{message}");
}

#[test]
fn the_depth_of_includes_is_bounded() {
    let mut files = vec![("outboard.toml".to_owned(), format!("include = \"1.toml\"\n{A}"))];
    for depth in 1..20 {
        files.push((format!("{depth}.toml"), format!("include = \"{}.toml\"\n", depth + 1)));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let (_, file, _, _, message) = Files::new("deep", &files).error();
    assert_eq!(file, "8.toml");
    assert!(message.contains("more than 8 deep"), "{message}");
}

#[test]
fn values_of_every_type_are_expanded() {
    // Cargo sets variables of the process; numbers come from files here.
    let text = format!(
        "listen = \"127.0.0.1:${{file:port}}\"\nthreads = \"${{file:number}}\"\n\
         reason_header = \"${{NOT_SET_HERE:-true}}\"\ndrain_timeout = \"${{file:number}}s\"\n\
         [limits]\nconnections = \"${{file:port}}\"\nbody = \"${{file:number}} MiB\"\n\
         [php]\nenv.NAME = \"$${{${{CARGO_PKG_NAME}}}}\"\n\
         {A}rewrite = [{{ match = '^/(?<x>a+)$', to = '/b${{x}}' }}]\n"
    );
    let files =
        Files::new("typed", &[("outboard.toml", &text), ("port", "8081\n"), ("number", "3\r\n")]);
    let config = files.config();
    assert_eq!(config.limits.max_connections, 8081);
    assert_eq!(config.limits.body_bytes, 3 << 20);
    assert_eq!(config.drain_timeout_ms, 3000);
    assert!(config.names_reasons);
    assert!(config.listeners[0].address.to_string().ends_with(":8081"));
    assert!(config.apps[0].php.env.iter().any(|(_, value)| value == "${outboard-config}"));
    assert!(config.files.contains(&files.0.join("port")), "{:?}", config.files);
}

#[test]
fn a_variable_that_is_not_set_is_one_error_with_its_place() {
    let text = format!("[limits]\n  connections = \"${{NOT_SET_HERE}}\"\n{A}");
    let (kind, _, line, column, message) = Files::new("unset", &[("outboard.toml", &text)]).error();
    assert_eq!((kind, line, column), (Kind::BadValue, 2, 17));
    assert_eq!(message, "`connections`: the environment variable `NOT_SET_HERE` is not set");
}

#[test]
fn an_error_does_not_repeat_the_content_of_a_file() {
    for key in ["limits.body", "user", "limits.connections", "io.temp_dir", "listen", "environment"]
    {
        let text = format!("{key} = \"${{file:secret}}\"\n{A}");
        let files =
            Files::new("secret", &[("outboard.toml", &text), ("secret", "/s3cr3t/x\u{1}y\n")]);
        if let Err(errors) = files.load() {
            let all = format!("{errors}{}", serde_json::to_string(&errors).unwrap());
            assert!(!all.contains("s3cr3t"), "{all}");
        } else {
            assert_eq!(key, "user");
        }
    }
}

#[test]
fn a_file_in_a_value_is_bounded_and_must_exist() {
    for (path, words) in [("none", "No such file"), ("/dev/zero", "larger than 64 KiB")] {
        let text = format!("user = \"${{file:{path}}}\"\n{A}");
        let (.., message) = Files::new("bounded", &[("outboard.toml", &text)]).error();
        assert!(message.contains(words), "{message}");
    }
}
