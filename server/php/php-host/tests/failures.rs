//! Failed scripts respond as under php-fpm, and the worker continues.

mod driver;

use driver::{Host, Response, TempDir, Worker, finished, get, ini, settings};
use outboard_ring::response::Outcome;

fn host(display_errors: &str) -> Host {
    let mut settings = settings();
    settings.ini.extend(ini(&[("display_errors", display_errors), ("html_errors", "0")]));
    Host::with(settings)
}

fn run(worker: &mut Worker, code: &str) -> Response {
    let folder = TempDir::new();
    folder.write("run.php", &format!("<?php {code}"));
    let response = worker.request(&get("run.php").root(&folder.0));
    assert!(!response.done.leaving);
    assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n", "after {code}");
    response
}

#[track_caller]
fn fails(code: &str, message: &str) {
    let quiet = run(&mut host("0").fork(), code);
    assert_eq!((quiet.status, quiet.done.outcome), (500, Outcome::Failed), "{code}");
    assert_eq!(quiet.text(), "", "{code}");
    assert!(quiet.log_text().contains(message), "{code}: {}", quiet.log_text());
    let loud = run(&mut host("1").fork(), code);
    assert_eq!((loud.status, loud.done.outcome), (200, Outcome::Failed), "{code}");
    assert!(loud.text().contains(message), "{code}: {}", loud.text());
}

#[test]
fn an_uncaught_exception_is_a_500_without_display_errors() {
    fails("throw new RuntimeException('broken pump');", "Uncaught RuntimeException: broken pump");
}

#[test]
fn a_fatal_error_is_a_500_without_display_errors() {
    fails("not_a_function();", "Call to undefined function not_a_function()");
    fails("abstract class A {} ; class B extends Missing {}", "Class \"Missing\" not found");
}

#[test]
fn a_parse_error_is_a_500_without_display_errors() {
    fails("if (", "Parse error: ");
}

#[test]
fn exhausted_memory_is_a_500_without_display_errors() {
    fails("ini_set('memory_limit', '4M'); $a = str_repeat('x', 9000000);", "Allowed memory size");
}

#[test]
fn a_time_limit_set_by_the_script_holds() {
    fails("set_time_limit(1); while (true);", "Maximum execution time of 1 second");
}

/// PHP code that uses this much CPU time.
fn burn(ms: u32) -> String {
    format!(
        "$used = fn() => array_sum(array_map(fn($of) =>
             getrusage()[\"ru_$of.tv_sec\"] * 1000 + getrusage()[\"ru_$of.tv_usec\"] / 1000,
             ['utime', 'stime']));
         $end = $used() + {ms}; while ($used() < $end);"
    )
}

fn host_with_limit_of_1_s() -> Host {
    let mut settings = settings();
    settings.ini.extend(ini(&[("max_execution_time", "1"), ("display_errors", "0")]));
    Host::with(settings)
}

#[test]
fn the_time_limit_of_php_ini_holds_repeatedly() {
    let mut host = host_with_limit_of_1_s();
    let mut worker = host.fork();
    for _ in 0..2 {
        let code = "register_shutdown_function(fn() => error_log('shut down'));
                    error_log(ini_get('max_execution_time')); while (true);";
        let response = run(&mut worker, code);
        assert_eq!((response.status, response.done.outcome), (500, Outcome::Failed));
        let log = response.log_text();
        assert!(log.starts_with("1\n"), "{log}");
        assert!(log.contains("Maximum execution time of 1 second exceeded"), "{log}");
        assert!(log.ends_with("shut down\n"), "{log}");
    }
}

#[test]
fn the_time_limit_is_per_request() {
    let mut host = host_with_limit_of_1_s();
    let mut worker = host.fork();
    for _ in 0..3 {
        assert_eq!(finished(&run(&mut worker, &burn(700))), "");
    }
}

#[test]
fn a_script_may_lift_or_raise_the_time_limit_of_php_ini() {
    let mut host = host_with_limit_of_1_s();
    let mut worker = host.fork();
    for change in ["set_time_limit(0);", "ini_set('max_execution_time', 9);"] {
        assert_eq!(finished(&run(&mut worker, &format!("{change} {}", burn(2100)))), "");
    }
    let response = run(&mut worker, "while (true);");
    assert!(response.log_text().contains("Maximum execution time of 1 second"), "for one request");
}

#[test]
fn a_fatal_error_in_a_shutdown_function_is_a_failure() {
    let response =
        run(&mut host("0").fork(), "register_shutdown_function(fn() => nope()); echo 'x';");
    assert_eq!(response.done.outcome, Outcome::Failed);
    assert!(response.log_text().contains("undefined function nope()"));
}

#[test]
fn exit_is_not_a_failure() {
    let mut host = host("0");
    let mut worker = host.fork();
    for (code, text) in
        [("exit;", ""), ("exit('bye');", "bye"), ("exit(255);", ""), ("die(1);", "")]
    {
        let response = run(&mut worker, code);
        assert_eq!((response.status, finished(&response).as_str()), (200, text), "{code}");
    }
}

#[test]
fn a_handled_exception_is_not_a_failure() {
    let mut host = host("0");
    let code =
        "set_exception_handler(function ($e) { http_response_code(503); echo $e->getMessage(); });
                throw new Exception('handled');";
    let response = run(&mut host.fork(), code);
    assert_eq!((response.status, finished(&response).as_str()), (503, "handled"));
}

#[test]
fn a_missing_script_is_refused_as_by_php_fpm() {
    let mut host = host("1");
    let mut worker = host.fork();
    let folder = TempDir::new();
    std::fs::create_dir(folder.0.join("folder.php")).unwrap();
    for script in ["missing.php", "folder.php", "hello.php/x.php"] {
        let response = worker.request(&get(script).root(&folder.0));
        assert_eq!((response.status, response.done.outcome), (404, Outcome::Refused), "{script}");
        assert_eq!(response.text(), "File not found.\n", "{script}");
        assert_eq!(response.log_text(), "Primary script unknown\n", "{script}");
        assert!(!response.done.leaving);
    }
    assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n");
}

#[test]
fn an_unreadable_script_is_refused_as_by_php_fpm() {
    let folder = TempDir::new();
    let path = folder.write("secret.php", "<?php echo 'secret';");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(&path, mode).unwrap();
    let mut settings = settings();
    // Root may read everything.
    if rustix::process::geteuid().is_root() {
        settings.run_as = Some((65534, 65534));
    }
    let response = Host::with(settings).fork().request(&get("secret.php").root(&folder.0));
    assert_eq!((response.status, response.done.outcome), (403, Outcome::Refused), "{response:?}");
    assert_eq!(response.text(), "Access denied.\n");
    assert!(response.log_text().starts_with("Unable to open primary script: "), "{response:?}");
}

#[test]
fn a_script_deleted_after_caching_is_refused() {
    let mut settings = settings();
    settings.ini.extend(ini(&[("opcache.revalidate_freq", "0")]));
    let mut host = Host::with(settings);
    let mut worker = host.fork();
    let folder = TempDir::new();
    let path = folder.write("gone.php", "<?php echo 'here';");
    for _ in 0..2 {
        assert_eq!(finished(&worker.request(&get("gone.php").root(&folder.0))), "here");
    }
    std::fs::remove_file(path).unwrap();
    assert_eq!(worker.request(&get("gone.php").root(&folder.0)).status, 404);
}
