//! Any bytes as a URL and as a reference from it (a `Location`): no panic, what is accepted can
//! stand in a request line, and reading it again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_upstream::Url;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (text, reference) = input;
    for base in [Url::parse(text), Url::parse(b"http://example.org/a/b?c")] {
        let Ok(base) = base else { continue };
        check(&base);
        if let Ok(followed) = base.join(reference) {
            check(&followed);
        }
    }
});

fn check(url: &Url) {
    assert_eq!(Url::parse(url.as_str().as_bytes()).as_ref(), Ok(url));
    assert_eq!([url.origin(), url.target()].concat(), url.as_str());
    assert!(url.target().starts_with('/'));
    assert!(url.target().bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
    assert!(
        url.authority()
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte))
    );
}
