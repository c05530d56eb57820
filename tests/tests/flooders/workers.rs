//! Floods from within PHP: what scripts print, log, ask for and hand over.

use super::*;
use outboard_e2e::{Backend, eventually};

#[test]
fn tiny_lines_on_standard_error() {
    is_borne("tiny lines, stderr", classic(), |site| {
        Flood::of_requests(site.address(), &["/print_tiny.php", "/print_tiny.php"])
    });
}

#[test]
fn tiny_lines_on_standard_output() {
    is_borne("tiny lines, stdout", classic(), |site| {
        Flood::of_requests(site.address(), &["/print_tiny.php?to=php://stdout"])
    });
}

#[test]
fn a_child_that_prints() {
    is_borne("yes 1>&2", classic(), |site| Flood::of_requests(site.address(), &["/print_yes.php"]));
}

#[test]
fn error_log_without_end() {
    is_borne("error_log()", classic(), |site| {
        Flood::of_requests(site.address(), &["/error_log.php", "/error_log.php"])
    });
}

#[test]
fn log_frames_of_a_worker_that_stays() {
    is_borne("Outboard\\log()", resident(), |site| Flood::of_requests(site.address(), &["/log"]));
}

#[test]
fn tasks_without_end() {
    is_borne("dispatch()", resident(), |site| Flood::of_requests(site.address(), &["/tasks"]));
}

#[test]
fn fetches_without_end() {
    let backend = Arc::new(Backend::start());
    let target = format!("/fetch?from={}", backend.address());
    is_borne("fetch()", resident(), |site| Flood::of_requests(site.address(), &[&target]));
}

#[test]
fn records_without_end() {
    is_borne("Outboard\\KV", classic(), |site| {
        Flood::of_requests(site.address(), &["/kv.php", "/kv.php"])
    });
}

#[test]
fn purges_without_end() {
    is_borne("cache_purge()", classic(), |site| {
        Flood::of_requests(site.address(), &["/purge.php", "/purge.php"])
    });
}

/// What the log has of a flood is some of its lines and how many there were.
#[test]
fn lines_beyond_the_limit_are_counted_in_the_log() {
    let site = serving(
        "[app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0\nloopback_slots = 0\n\
         [app.site.log.error]\npath = \"site.log\"\nlines_per_second = 50",
    );
    for target in ["/print_tiny.php", "/error_log.php"] {
        Flood::of_requests(site.address(), &[target]).late();
        let path = site.docroot().beside().path().join("site.log");
        let text = eventually("the log counts the lines that it lacks", || {
            let text = std::fs::read_to_string(&path).expect("it has a log");
            let counts = text.lines().any(|line| line.contains("lines_per_second = 50"));
            if counts { Ok(text) } else { Err(text) }
        });
        assert!(text.lines().count() < 2_000, "{} lines", text.lines().count());
        std::fs::write(&path, "").expect("it is ours");
    }
}

#[test]
fn many_records_at_a_time() {
    is_borne("KV, 20,000 at a time", classic(), |site| {
        Flood::of_requests(site.address(), &["/kv_many.php", "/kv_many.php"])
    });
}

#[test]
fn records_that_all_end_at_once() {
    is_borne("KV, ends at once", classic(), |site| {
        Flood::of_requests(site.address(), &["/kv_ends.php"])
    });
}

#[test]
fn a_queue_of_a_hundred_thousand_tasks_that_a_reload_hands_on() {
    let site = serving(
        "mode = \"worker\"\nworker.script = \"www/worker.php\"\n\
         [app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0\nloopback_slots = 0\n\
         [app.site.tasks]\nworkers = 1\nqueue_length = 100000\n",
    );
    is_borne("100,000 tasks, reload", site, |site| {
        let flood = Flood::of_requests(site.address(), &["/waiting_tasks"]);
        let socket = site.admin_socket();
        let reload = Flood::of_clients(1, move || {
            sleep(DEADLINE / 2);
            ask_admin(&socket, "POST", "/reload");
            sleep(DEADLINE / 2);
        });
        flood.and(reload)
    });
}
