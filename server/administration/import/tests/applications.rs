//! Configurations in the style that applications document, each with what is not carried over.
//!
//! `OUTBOARD_REGENERATE=1 cargo test -p outboard-import` writes the lists beside the fixtures.

use outboard_config::{Balance, Config, HashKey, ProxyTarget};
use outboard_import::{Imported, Kind, import};
use std::fs;
use std::path::{Path, PathBuf};

fn fixtures(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(directory);
    let mut all: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "conf"))
        .collect();
    all.sort();
    all
}

fn imported(file: &Path) -> Imported {
    import(file, None, &|path| fs::read_to_string(path)).unwrap_or_else(|error| panic!("{error}"))
}

/// A file of passwords with one user.
const PASSWORDS: &str = "admin:$2y$04$abcdefghijklmnopqrstuuVzU0q8E7xq0vNRJ0xj0Q1J8gJ5w3k3K\n";

/// Every path of the configuration is created in a directory of the test's own.
fn check(file: &Path, toml: &str) -> Config {
    let name = file.file_stem().unwrap().to_str().unwrap();
    let kind = file.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{kind}-{name}-{test}"));
    let _ = fs::remove_dir_all(&directory);
    let here = directory.to_str().unwrap();
    let text = toml
        .replace("\"/srv/", &format!("\"{here}/srv/"))
        .replace("\"/etc/", &format!("\"{here}/etc/"));
    let table: toml::Table = text.parse().unwrap();
    for app in table["app"].as_table().unwrap().values() {
        let root = PathBuf::from(app["root"].as_str().unwrap());
        fs::create_dir_all(&root).unwrap();
        let front = app["front_controller"].as_str().unwrap();
        let pages = app.get("error_pages").and_then(toml::Value::as_table);
        let pages =
            pages.into_iter().flat_map(|pages| pages.values()).filter_map(toml::Value::as_str);
        for page in pages.chain((front != "none").then_some(front)) {
            let path = root.join(page.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }
    let is_file = |part: &&str| [".pem", ".key", "/htpasswd"].iter().any(|end| part.ends_with(end));
    let quoted = text.split('"').filter(is_file);
    for path in quoted {
        fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
        fs::write(path, if path.ends_with("/htpasswd") { PASSWORDS } else { "" }).unwrap();
    }
    let config = Config::parse(&text, &directory.join("outboard.toml"))
        .unwrap_or_else(|errors| panic!("{}: {errors}\nin\n{text}", file.display()));
    for app in &config.apps {
        assert!(!app.deny.denies(b"/index.php"), "{}: {text}", file.display());
    }
    config
}

fn listed(file: &Path, imported: &Imported) {
    let mut list = String::new();
    for one in &imported.omissions {
        list.push_str(&format!("{}: {}: {}\n", one.line, one.directive, one.reason));
    }
    let golden = file.with_extension("omitted");
    if std::env::var_os("OUTBOARD_REGENERATE").is_some() {
        fs::write(&golden, &list).unwrap();
    }
    assert_eq!(fs::read_to_string(&golden).unwrap_or_default(), list, "{}", golden.display());
}

#[test]
fn configurations_of_nginx_become_valid_ones() {
    let all = fixtures("nginx");
    assert!(all.len() >= 10, "{} fixtures", all.len());
    for file in all {
        let imported = imported(&file);
        assert_eq!(imported.kind, Kind::Nginx, "{}", file.display());
        check(&file, &imported.toml);
        listed(&file, &imported);
    }
}

#[test]
fn configurations_of_httpd_become_valid_ones() {
    let all = fixtures("httpd");
    assert!(all.len() >= 10, "{} fixtures", all.len());
    for file in all {
        let imported = imported(&file);
        assert_eq!(imported.kind, Kind::Httpd, "{}", file.display());
        check(&file, &imported.toml);
        listed(&file, &imported);
    }
}

#[test]
fn denied_paths_remain_denied() {
    for kind in ["nginx", "httpd"] {
        for (name, paths) in [
            ("drupal", &["/core/x.module", "/x.inc"][..]),
            ("nextcloud", &["/config/config.php", "/data/x", "/3rdparty/x"][..]),
            ("dokuwiki", &["/conf/users.auth.php", "/data/pages/x", "/inc/x.php"][..]),
        ] {
            let file = fixtures(kind).into_iter().find(|path| path.file_stem().unwrap() == name);
            let file = file.unwrap();
            let config = check(&file, &imported(&file).toml);
            let app = &config.apps[0];
            for path in paths {
                let is_denied = app.deny.denies(path.as_bytes())
                    || app.rewrites.iter().any(|rule| rule.pattern.is_match(path.as_bytes()));
                assert!(is_denied, "{kind} {name}: {path}");
            }
        }
    }
}

#[test]
fn upstreams_of_nginx_keep_their_servers_and_options() {
    let file = fixtures("nginx").into_iter().find(|path| path.ends_with("balanced.conf")).unwrap();
    let config = check(&file, &imported(&file).toml);
    let [app, users] = &config.upstreams[..] else { panic!("{:?}", config.upstreams) };
    assert_eq!((&app.name[..], app.balance), ("app_servers", Balance::LeastConnections));
    assert_eq!((app.max_fails, app.fail_timeout_ms, app.slow_start_ms), (Some(2), 5_000, 30_000));
    let servers: Vec<_> = app.servers.iter().map(|one| (one.weight, one.is_backup)).collect();
    assert_eq!(servers, [(3, false), (1, false), (1, true)]);
    assert_eq!(app.servers[1].max_connections, Some(200));
    assert_eq!(app.servers[2].socket.as_deref(), Some(Path::new("/run/app.sock")));
    assert_eq!(users.hash_key, HashKey::Header("x-user".to_owned()));
    assert_eq!(users.servers[0].origin, "https://a.internal:80");
    let targets: Vec<_> =
        config.apps[0].proxies.iter().map(|route| route.upstream.clone()).collect();
    let group = |name: &str| ProxyTarget::Group { name: name.to_owned(), path: String::new() };
    let single = ProxyTarget::Url("http://127.0.0.1:9000".to_owned());
    assert_eq!(targets, [group("app_servers"), group("by_user"), single]);
}

#[test]
fn balancers_of_httpd_keep_their_members_and_options() {
    let file = fixtures("httpd").into_iter().find(|path| path.ends_with("balanced.conf")).unwrap();
    let config = check(&file, &imported(&file).toml);
    let [accounts, search] = &config.upstreams[..] else { panic!("{:?}", config.upstreams) };
    assert_eq!((&accounts.name[..], accounts.balance), ("accounts", Balance::LeastConnections));
    assert_eq!((accounts.fail_timeout_ms, accounts.retries), (5_000, 2));
    assert!(accounts.sticky.is_some() && search.sticky.is_none());
    let servers: Vec<_> = accounts.servers.iter().map(|one| (one.weight, one.is_backup)).collect();
    assert_eq!(servers, [(3, false), (1, false), (1, true)]);
    assert_eq!(search.servers[1].socket.as_deref(), Some(Path::new("/run/search.sock")));
    assert!(search.health_check.is_some() && search.failure_status.contains(503));
    let targets: Vec<_> =
        config.apps[0].proxies.iter().map(|route| route.upstream.clone()).collect();
    let group = |name: &str| ProxyTarget::Group { name: name.to_owned(), path: String::new() };
    assert_eq!(targets, [group("accounts"), group("search")]);
}
