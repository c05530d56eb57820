//! Any words of PHP on the page that a developer gets: no panic, and nothing of them is markup.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_development::failure;

fuzz_target!(|input: (&str, &str)| {
    let (words, request) = input;
    let tags = |page: String| page.matches('<').count();
    let plain = |text: &str| text.replace('<', "=");
    let without = tags(failure::html(&plain(words), &plain(request)));
    assert_eq!(tags(failure::html(words, request)), without);
    failure::plain(words);
});
