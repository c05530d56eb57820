//! The configuration file: any text gives a configuration or mistakes that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_config::Config;
use std::path::Path;

fuzz_target!(|text: &str| {
    if let Err(mistakes) = Config::parse(text, Path::new("/nonexistent/outboard.toml")) {
        assert!(mistakes.len() > 0);
        assert!(!mistakes.render(true).is_empty());
    }
});
