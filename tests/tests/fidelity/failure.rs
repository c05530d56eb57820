//! Exceptions, fatal errors and limits: the status, the page, and the life after them.

use crate::pair;
use outboard_e2e::Request;

#[track_caller]
fn same(target: &str) -> outboard_e2e::Response {
    pair().same(&Request::get(target))
}

#[test]
fn an_uncaught_exception_is_a_500_without_its_text() {
    let response = same("/uncaught.php").expect(500);
    assert!(!response.text().contains("thrown on purpose"));
}

#[test]
fn with_display_errors_its_text_is_shown() {
    same("/uncaught_shown.php").expect(200).holding("thrown");
    same("/uncaught_shown.php?html=0").expect(200).holding("thrown <b>on purpose</b>");
    same("/shown/fatal.php").expect(200).holding("shown");
}

#[test]
fn an_exception_handler_decides() {
    same("/exception_handler.php").expect(502).holding("handled by hand");
}

#[test]
fn warnings_are_shown_where_they_arise() {
    same("/warnings.php").expect(200).holding("Undefined variable $undefined");
}

#[test]
fn an_error_handler_takes_warnings() {
    same("/error_handler.php").expect(200).holding("handled 512 by hand");
}

#[test]
fn a_fatal_error_is_a_500() {
    same("/fatal.php").expect(500);
    same("/fatal_shown.php").expect(200).holding("missing_function");
}

#[test]
fn after_a_flush_a_fatal_error_cannot_change_the_status() {
    same("/fatal_after_flush.php").expect(200).saying("sent\n");
}

#[test]
fn a_shutdown_function_has_the_last_word_after_a_fatal_error() {
    same("/fatal_caught_in_shutdown.php").expect(500).holding("last words: Uncaught Error");
}

#[test]
fn a_parse_error_is_a_500_and_shown_when_asked_for() {
    same("/parse_error.php").expect(500).saying("");
    same("/shown/parse_error.php").holding("Parse error");
}

#[test]
fn the_memory_limit_ends_the_script_and_not_the_worker() {
    for _ in 0..4 {
        same("/memory_limit.php").expect(500).holding("Allowed memory size of N bytes exhausted");
        same("/hello.php").expect(200).saying("Hello, world\n");
    }
}

#[test]
fn the_time_limit_ends_a_busy_loop() {
    same("/time_limit.php").holding("Maximum execution time of 1 second exceeded");
    same("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn deep_recursion_and_backtracking_end_as_under_php_fpm() {
    same("/stack_of_calls.php").expect(200).saying("50000\n");
    same("/regex_limit.php").expect(200);
}

#[test]
fn error_log_reaches_the_servers_log() {
    same("/error_log.php?mark=mark-of-error-log").expect(200).saying("logged\n");
    same("/fatal.php").expect(500);
    for site in [&pair().reference, &pair().subject] {
        // The answer has come; what the script logged before it need not have been read yet.
        let mut client = outboard_e2e::Client::new(site.address());
        for _ in 0..50 {
            if site.log().contains("mark-of-error-log") && site.log().contains("missing_function") {
                break;
            }
            client.send(&Request::get("/hello.php")).expect(200);
        }
        assert!(site.log().contains("logged by the script mark-of-error-log"), "{}", site.name());
        assert!(site.log().contains("missing_function"), "{}", site.name());
    }
}

#[test]
fn php_stderr_is_not_part_of_the_answer() {
    same("/stderr.php?mark=1").expect(200).saying("written\n");
}
