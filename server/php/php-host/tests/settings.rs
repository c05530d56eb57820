//! ini values: files, overrides, fixed ones, `.user.ini`, prepended files.

mod driver;

use driver::{Host, TempDir, finished, get, ini, settings};

#[test]
fn overrides_win_over_files_and_fixed_values_over_scripts() {
    let folder = TempDir::new();
    let file =
        folder.write("php.ini", "precision=11\nmemory_limit=64M\nerror_prepend_string=file\n");
    folder.write(
        "run.php",
        "<?php echo json_encode([ini_get('precision'), ini_get('memory_limit'),
             ini_set('memory_limit', '1G'), ini_get('memory_limit'),
             ini_set('precision', '5'), ini_get('error_reporting')]);",
    );
    let mut settings = settings();
    settings.ini_file = Some(file.clone());
    settings.ini_scan_dir = Some(folder.0.join("none"));
    settings.ini.extend(ini(&[("precision", "12"), ("error_reporting", "E_ERROR | E_WARNING")]));
    settings.fixed_ini = ini(&[("memory_limit", "96M")]);
    let mut host = Host::with(settings);
    let text = finished(&host.fork().request(&get("run.php").root(&folder.0)));
    assert_eq!(text, r#"["12","96M",false,"96M","12","3"]"#);
    let outboard_ring::control::Event::Started { ini_file, .. } = &host.started else { panic!() };
    assert_eq!(ini_file.as_deref(), Some(file.as_path()));
}

#[test]
fn the_ini_files_are_those_of_php_fpm() {
    let folder = TempDir::new();
    folder.write("run.php", "<?php echo PHP_VERSION, '|', php_ini_scanned_files();");
    let mut host = Host::new();
    let text = finished(&host.fork().request(&get("run.php").root(&folder.0)));
    let (version, scanned) = text.split_once('|').unwrap();
    let home = format!("/etc/php/{}", version.rsplit_once('.').unwrap().0);
    let first = |name: &str| {
        let folders = ["outboard", "fpm", "embed"];
        let mut paths = folders.map(|folder| format!("{home}/{folder}/{name}")).into_iter();
        paths.find(|path| std::path::Path::new(path).exists()).unwrap()
    };
    let outboard_ring::control::Event::Started { ini_file, .. } = &host.started else { panic!() };
    assert_eq!(ini_file.as_deref(), Some(std::path::Path::new(&first("php.ini"))));
    assert!(scanned.starts_with(&first("conf.d")), "{scanned}");
}

#[test]
fn user_ini_files_apply_from_the_root_down() {
    let folder = TempDir::new();
    folder.write(".user.ini", "precision=3\nserialize_precision=4\nmemory_limit=1G\n");
    folder.write("sub/.user.ini", "precision=5\n");
    let script = "<?php echo ini_get('precision'), ' ', ini_get('serialize_precision'), ' ',
                       ini_get('memory_limit');";
    folder.write("run.php", script);
    folder.write("sub/run.php", script);
    let mut settings = settings();
    settings.fixed_ini = ini(&[("memory_limit", "96M")]);
    let mut host = Host::with(settings);
    let mut worker = host.fork();
    for _ in 0..2 {
        assert_eq!(finished(&worker.request(&get("run.php").root(&folder.0))), "3 4 96M");
        assert_eq!(finished(&worker.request(&get("sub/run.php").root(&folder.0))), "5 4 96M");
        let text = finished(&worker.request(&get("ini.php").query("names=precision")));
        assert_eq!(text, "precision='14'\n", "another folder is not affected");
    }
}

#[test]
fn auto_prepend_and_append_files_run() {
    let folder = TempDir::new();
    let before = folder.write("before.php", "<?php echo 'before ';");
    let after = folder.write("after.php", "<?php echo ' after';");
    folder.write("run.php", "<?php echo 'script';");
    let mut settings = settings();
    settings.ini.extend(ini(&[
        ("auto_prepend_file", before.to_str().unwrap()),
        ("auto_append_file", after.to_str().unwrap()),
    ]));
    let mut host = Host::with(settings);
    let mut worker = host.fork();
    for _ in 0..2 {
        assert_eq!(
            finished(&worker.request(&get("run.php").root(&folder.0))),
            "before script after"
        );
    }
}

#[test]
fn sessions_work_across_workers() {
    let folder = TempDir::new();
    folder.write(
        "run.php",
        "<?php session_start(); echo $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;",
    );
    let mut settings = settings();
    settings.ini.extend(ini(&[("session.save_path", folder.0.to_str().unwrap())]));
    let mut host = Host::with(settings);
    let response = host.fork().request(&get("run.php").root(&folder.0));
    assert_eq!(finished(&response), "1");
    let cookie = response.line("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let request = get("run.php").root(&folder.0).header("Cookie", &cookie);
    assert_eq!(finished(&host.fork().request(&request)), "2");
}

#[test]
fn the_environment_is_complete_and_not_inherited() {
    let folder = TempDir::new();
    folder.write("run.php", "<?php passthru('/usr/bin/env');");
    let mut host = Host::new();
    let text = finished(&host.fork().request(&get("run.php").root(&folder.0)));
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    assert_eq!(names, ["APP_COLOUR", "HOME", "USER"]);
}
