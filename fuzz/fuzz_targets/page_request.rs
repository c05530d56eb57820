//! Any request to an app with a page cache, and any answer: what carries a cookie that says who asks
//! is never shared, no path of another origin is made invalid, tags are bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http1::Method;
use outboard_page_cache::{
    CookieRules, Difference, Fields, BypassRules, NamePattern, Policy, Reason, Request, RequestFacts,
    Response, Target, Variant, invalidated, tags,
};

const TARGET: Target<'_> =
    Target { scheme: b"https", authority: b"example.org", path_and_query: b"/a/b?c" };

fuzz_target!(|input: (&str, [&[u8]; 4], bool)| {
    let (pattern, [cookie, reference, listed, other], silent) = input;
    let cookies = CookieRules {
        login: vec![NamePattern::new("login*")],
        ignored: vec![NamePattern::new(pattern)],
    };
    let lines: [(&[u8], &[u8]); 7] = [
        (b"cookie", cookie),
        (b"accept", listed),
        (b"cache-tag", listed),
        (b"surrogate-key", other),
        (b"vary", listed),
        (b"location", reference),
        (b"x-forwarded-host", other),
    ];
    let fields = Fields(&lines);

    let with_login = [cookie, b"; login_1=x"].concat();
    let guard = BypassRules { cookies: cookies.clone(), ..BypassRules::default() };
    let read = |lines: &[(&[u8], &[u8])]| {
        let request = Request { method: Method::Get, path: b"/", fields: Fields(lines) };
        RequestFacts::read(request, &guard, &Policy::STANDARD).err()
    };
    read(&lines);
    assert_eq!(read(&[(b"cookie", &with_login)]), Some(Reason::LoginCookie));

    if let Ok(variant) = Variant::of(fields, fields, silent, &cookies) {
        assert!(variant.matches(fields, silent, &cookies));
    }
    assert!(tags(fields).count() <= 1000);
    assert!(tags(fields).all(|tag| !tag.is_empty()));
    for path in invalidated(Method::Post, TARGET, Response { status: 303, fields }) {
        assert!(path.starts_with(b"/"));
    }
    if let Some(difference) = Difference::between([cookie, listed], [reference, other]) {
        assert!(!difference.excerpt().is_empty());
    }
});
