//! What a request changes of the engine and the process is as before in the next one. The changes
//! are in `fixtures/clean/things.php`.

use crate::{CONCURRENCIES, serving};
use outboard_e2e::{Configured, Response};

macro_rules! things {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                for concurrency in CONCURRENCIES {
                    put_back(&serving(concurrency), stringify!($name));
                }
            }
        )+

        /// Every thing of the fixture has its test.
        #[test]
        fn none_is_forgotten() {
            let text = include_str!("../../fixtures/clean/things.php");
            let listed = |line: &&str| line.starts_with("    '") && line.contains(" => ");
            let names = text.lines().filter(listed).filter_map(|line| line.split('\'').nth(1));
            assert_eq!(names.collect::<Vec<_>>(), [$(stringify!($name)),+]);
        }
    };
}

things! {
    session
    superglobals
    ini_set
    memory_limit
    include_path
    time_limit
    ignore_user_abort
    collector
    environment
    error_handler
    exception_handler
    error_reporting
    last_error
    assert_options
    shutdown_function
    output_buffer
    header_callback
    headers_and_status
    rewrite_variables
    locale
    time_zone
    mbstring
    libxml
    directory
    umask
    stream_context
    stream_context_parameters
    stream_wrappers
    stream_filters
    temporary_streams
    locks
}

/// All that a client can tell one answer from another by.
fn seen(response: &Response) -> (u16, Vec<(String, String)>, String) {
    let is_compared = |name: &str| !["date", "x-request-id"].contains(&name);
    let fields = response.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone()));
    (response.status, fields.filter(|(name, _)| is_compared(name)).collect(), response.text())
}

#[track_caller]
fn put_back(site: &Configured, thing: &str) {
    let ask = |verb: &str| seen(&site.client().get(&format!("/{verb}/{thing}")));
    let before = ask("probe");
    assert_eq!(before.0, 200, "{before:?}");
    for _ in 0..2 {
        ask("change");
        assert_eq!(ask("probe"), before, "{thing}");
    }
}
