//! `outboard init`: creates a commented configuration file and an application.
//!
//! Called by the command line. Invariant: existing files are never overwritten; the first file that
//! cannot be written is reported.

use crate::named::directories::check_name;
use crate::terminal::{Terminal, say};
use clap::Args;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The name of the server.
    pub(crate) name: String,
    /// The kind of application.
    #[arg(long, value_enum, default_value = "classic")]
    pub(crate) template: Template,
    /// Serve the WordPress in --dir: write a configuration for it and add must-use plugins, which have
    /// pages start from a snapshot and purge the page cache.
    #[arg(long, conflicts_with = "template")]
    pub(crate) wordpress: bool,
    /// The directory of the application [default: ./NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration directory [default: ./outboard.d].
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// The directory of the PHP package `outboard/runtime`, for controllers and views [default: the
    /// one installed with this program].
    #[arg(long, value_name = "DIR")]
    pub(crate) package: Option<PathBuf>,
    /// Its address [default: the first free port from 8080].
    #[arg(long, short, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
}

/// Templates of `outboard init`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Template {
    /// A script that runs once per request.
    Classic,
    /// A worker script.
    Worker,
    /// Controllers and views.
    Mvc,
}

const SERVER: &str = include_str!("../templates/server.toml");
const WORDPRESS: &str = include_str!("../templates/wordpress.toml");
const STYLE: &str = include_str!("../templates/style.css");
/// The default configuration directory.
const PROJECT: &str = "outboard.d";
/// Ports to try for the new server.
const PORTS: std::ops::Range<u16> = 8080..8180;

/// Files of an application, by path in its directory.
type Files = &'static [(&'static str, &'static str)];

const CLASSIC: Files = &[
    ("public/index.php", include_str!("../templates/classic/public/index.php")),
    ("public/style.css", STYLE),
];

const WORKER: Files = &[
    ("worker.php", include_str!("../templates/worker/worker.php")),
    ("src/Page.php", include_str!("../templates/worker/src/Page.php")),
    ("public/style.css", STYLE),
];

const MVC: Files = &[
    ("worker.php", include_str!("../templates/mvc/worker.php")),
    (
        "modules/app/controller/index.php",
        include_str!("../templates/mvc/modules/app/controller/index.php"),
    ),
    (
        "modules/app/view/index/index.php",
        include_str!("../templates/mvc/modules/app/view/index/index.php"),
    ),
    ("modules/app/view/layout.php", include_str!("../templates/mvc/modules/app/view/layout.php")),
    ("public/style.css", STYLE),
];

/// The must-use plugins of the PHP package, for a WordPress that is there already.
const PLUGINS: Files = &[
    (
        "wp-content/mu-plugins/outboard-snapshot.php",
        include_str!("../../../php/drop-ins/wordpress/outboard-snapshot.php"),
    ),
    (
        "wp-content/mu-plugins/outboard-page-cache.php",
        include_str!("../../../php/drop-ins/wordpress/outboard-page-cache.php"),
    ),
];

pub(crate) fn run(arguments: &InitArguments, terminal: &Terminal) -> ExitCode {
    match create(arguments) {
        Err(message) => terminal.fail(&message, 2),
        Ok(created) => {
            for path in &created.files {
                say!("wrote {}", path.display());
            }
            let name = terminal.bold(&format!("outboard start {}", arguments.name));
            if let Some(directory) = &created.needs_package {
                say!(
                    "\nthe PHP package is not installed with this server: run `composer require outboard/runtime` in {},",
                    directory.display()
                );
                say!("or run init again with --package DIR; then");
            }
            say!("\n{name}, then open http://{}/", created.listen);
            ExitCode::SUCCESS
        }
    }
}

struct Created {
    files: Vec<PathBuf>,
    listen: String,
    /// The application's directory, if the PHP package was not found.
    needs_package: Option<PathBuf>,
}

fn create(arguments: &InitArguments) -> Result<Created, String> {
    let name = &arguments.name;
    check_name(name)?;
    let conf_dir = arguments.conf_dir.clone().unwrap_or_else(|| PathBuf::from(PROJECT));
    let directory = arguments.dir.clone().unwrap_or_else(|| PathBuf::from(name));
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let config = conf_dir.join(format!("{name}.toml"));
    if arguments.wordpress && !directory.join("wp-settings.php").is_file() {
        return Err(format!(
            "{} has no WordPress: name its directory with --dir",
            directory.display()
        ));
    }
    let files = if arguments.wordpress { PLUGINS } else { files(arguments.template) };
    for path in files.iter().map(|(path, _)| directory.join(path)).chain([config.clone()]) {
        if path.exists() {
            return Err(format!("{} exists already; nothing was written", path.display()));
        }
    }
    let listen = arguments.listen.clone().unwrap_or_else(|| free_address(&conf_dir));
    let package = match &arguments.package {
        Some(directory) => Some(absolute(directory)?),
        None => package(),
    };
    let is_missing = package.is_none() && matches!(arguments.template, Template::Mvc);
    let package = package.unwrap_or_else(|| PathBuf::from("vendor/outboard/runtime"));
    let mode = match arguments.template {
        Template::Classic => "# mode = \"worker\"   # see docs/guide/worker-mode.md\n",
        Template::Worker | Template::Mvc => {
            "mode = \"worker\"\nworker.script = \"{{folder}}/worker.php\"\n\n# Maximum concurrent requests per worker, \
             each in a coroutine.\n# worker.concurrency = 100\n"
        }
    };
    let facts = [
        ("{{mode}}", mode.to_owned()),
        ("{{name}}", name.clone()),
        ("{{app}}", name.replace('.', "-")),
        ("{{folder}}", seen_from(&absolute(&conf_dir)?, &absolute(&directory)?)),
        ("{{listen}}", listen.clone()),
        ("{{package}}", package.display().to_string()),
    ];
    let fill = |text: &str| {
        facts.iter().fold(text.to_owned(), |text, (mark, fact)| text.replace(mark, fact))
    };
    let needs_package = is_missing.then(|| directory.clone());
    let mut created = Created { files: Vec::new(), listen, needs_package };
    for (path, text) in files.iter().map(|(path, text)| (directory.join(path), *text)) {
        let text = if arguments.wordpress { text.to_owned() } else { fill(text) };
        write_new(&path, &text)?;
        created.files.push(path);
    }
    write_new(&config, &fill(if arguments.wordpress { WORDPRESS } else { SERVER }))?;
    created.files.push(config);
    Ok(created)
}

fn files(template: Template) -> Files {
    match template {
        Template::Classic => CLASSIC,
        Template::Worker => WORKER,
        Template::Mvc => MVC,
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), String> {
    let cannot = |error: io::Error| format!("{} cannot be written: {error}", path.display());
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(cannot)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)
}

/// The application's directory, relative to the configuration if they have the same parent.
fn seen_from(conf_dir: &Path, directory: &Path) -> String {
    match conf_dir.parent().and_then(|beside| directory.strip_prefix(beside).ok()) {
        Some(inner) => format!("../{}", inner.display()),
        None => directory.display().to_string(),
    }
}

/// A free address that no other server of the configuration directory uses.
fn free_address(conf_dir: &Path) -> String {
    let others = fs::read_dir(conf_dir).into_iter().flatten().flatten();
    let others: Vec<String> =
        others.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect();
    let addresses = PORTS.map(|port| format!("127.0.0.1:{port}"));
    let mut free = addresses.filter(|address| {
        let is_named = others.iter().any(|text| text.contains(&format!("\"{address}\"")));
        !is_named && TcpListener::bind(address).is_ok()
    });
    free.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned())
}

/// The PHP package installed with this program.
fn package() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let around = own.ancestors().skip(1).take(4);
    let found =
        around.flat_map(|directory| [directory.join("php"), directory.join("share/outboard/php")]);
    let mut found = found.filter(|directory| directory.join("src/Mvc/Application.php").is_file());
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_relative_to_the_configuration() {
        let seen = |conf: &str, directory: &str| seen_from(Path::new(conf), Path::new(directory));
        assert_eq!(seen("/p/outboard.d", "/p/shop"), "../shop");
        assert_eq!(seen("/etc/outboard", "/srv/shop"), "/srv/shop");
    }

    fn arguments(name: &str, at: &Path) -> InitArguments {
        InitArguments {
            name: name.to_owned(),
            template: Template::Classic,
            wordpress: false,
            dir: Some(at.join(name)),
            conf_dir: Some(at.join("outboard.d")),
            package: None,
            listen: Some("127.0.0.1:8123".to_owned()),
        }
    }

    #[test]
    fn each_template_is_a_valid_configuration() {
        let at = crate::tests::admin_server::directory("init");
        for (name, template) in
            [("one", Template::Classic), ("two.test", Template::Worker), ("three", Template::Mvc)]
        {
            let created = create(&InitArguments { template, ..arguments(name, &at) }).unwrap();
            assert_eq!(created.listen, "127.0.0.1:8123");
            assert!(created.files.iter().all(|file| file.is_file()));
            let config = at.join(format!("outboard.d/{name}.toml"));
            assert_eq!(created.files.last(), Some(&config));
            for file in &created.files {
                assert!(!fs::read_to_string(file).unwrap().contains("{{"), "{}", file.display());
            }
            let config =
                outboard_config::Config::load(&config).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(config.apps[0].name, name.replace('.', "-"));
        }
        fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn a_file_that_exists_is_not_overwritten() {
        let at = crate::tests::admin_server::directory("init-exists");
        let style = at.join("shop/public/style.css");
        fs::create_dir_all(style.parent().unwrap()).unwrap();
        fs::write(&style, "mine").unwrap();
        let error = create(&arguments("shop", &at)).err().unwrap();
        assert_eq!(error, format!("{} exists already; nothing was written", style.display()));
        assert_eq!(fs::read_to_string(&style).unwrap(), "mine");
        assert!(!at.join("outboard.d").exists() && !at.join("shop/public/index.php").exists());
        let error = create(&arguments("../shop", &at)).err().unwrap();
        assert!(error.starts_with("`../shop` is not a valid server name"), "{error}");
        let wordpress = InitArguments { wordpress: true, ..arguments("blog", &at) };
        let error = create(&wordpress).err().unwrap();
        assert!(error.ends_with("has no WordPress: name its directory with --dir"), "{error}");
        fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn an_address_of_another_server_is_not_free() {
        let at = crate::tests::admin_server::directory("init-address");
        let first = free_address(&at);
        fs::write(at.join("other.toml"), format!("address = \"{first}\"\n")).unwrap();
        assert_ne!(free_address(&at), first);
        fs::remove_dir_all(at).unwrap();
    }
}
