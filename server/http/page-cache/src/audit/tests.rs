use super::*;
use crate::test_support::{entry, entry_with};
use outboard_reactor::run;
use std::fmt;

/// A request to an origin that renders by its fields.
struct Page {
    fields: OwnFields,
    render: Box<dyn Fn(&OwnFields) -> Replayed>,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").finish_non_exhaustive()
    }
}

impl Replay for Page {
    fn path(&self) -> &[u8] {
        b"/page"
    }

    fn fields(&self) -> OwnFields {
        self.fields.clone()
    }

    fn send(&self, fields: &OwnFields) -> Pin<Box<dyn Future<Output = Option<Replayed>>>> {
        let replayed = (self.render)(fields);
        Box::pin(async move { Some(replayed) })
    }
}

fn owned(fields: &[(&str, &str)]) -> OwnFields {
    fields.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())).collect()
}

fn text(body: String) -> Replayed {
    Replayed { status: 200, personal_because: None, body: body.into_bytes() }
}

/// The value of a field.
fn value(fields: &OwnFields, name: &str) -> String {
    let found = fields.iter().find(|(other, _)| other == name.as_bytes());
    found.map_or("none".to_owned(), |(_, value)| String::from_utf8(value.clone()).unwrap())
}

const REQUEST: &[(&str, &str)] =
    &[("host", "a.test"), ("x-country", "CH"), ("cookie", "currency=EUR; theme=dark")];

/// The finding about a stored page, which the origin renders by the fields of [`REQUEST`].
fn finding(entry: Entry, render: impl Fn(&OwnFields) -> Replayed + 'static) -> Option<Finding> {
    run(async move {
        let audit = Audit::new("site", 1_000_000, &Arc::default());
        let page = Page { fields: owned(REQUEST), render: Box::new(render) };
        let sample = audit.sample(&entry, || Some(Rc::new(page))).expect("every hit is due");
        let finding = audit.run(&sample).await;
        assert_eq!(audit.has_removed(b"/page"), finding.is_some());
        assert_eq!(audit.stats().examined, 1);
        finding
    })
    .unwrap()
}

#[test]
fn a_page_that_depends_on_a_cookie_names_the_cookie() {
    let render = |fields: &OwnFields| match value(fields, "cookie").contains("currency=EUR") {
        true => text("price EUR".to_owned()),
        false => text("price USD".to_owned()),
    };
    let finding = finding(entry("/page?x=1", 1), render).unwrap();
    assert_eq!((&*finding.app, &*finding.url), ("site", "http://a.test/page?x=1"));
    assert_eq!((&*finding.by, &*finding.excerpt), ("the cookie currency", "price EUR"));
}

#[test]
fn a_page_that_shows_a_cookie_of_any_value_is_found() {
    // The own value results in the same page as no cookie.
    let render = |fields: &OwnFields| match value(fields, "cookie").contains("theme=outboard") {
        true => text("colour unknown".to_owned()),
        false => text("colour dark".to_owned()),
    };
    assert_eq!(finding(entry("/page", 1), render).unwrap().by, "the cookie theme");
}

#[test]
fn a_page_that_depends_on_a_header_names_the_header() {
    let render = |fields: &OwnFields| text(format!("country {}", value(fields, "x-country")));
    assert_eq!(finding(entry("/page", 1), render).unwrap().by, "the header x-country");
}

#[test]
fn a_header_that_the_page_varies_by_is_allowed() {
    let render = |fields: &OwnFields| text(format!("country {}", value(fields, "x-country")));
    let varying = entry_with("/page", 1, &[(b"Vary", b"X-Country")]);
    assert_eq!(finding(varying, render), None);
}

#[test]
fn required_fields_and_noise_are_not_findings() {
    let count = Cell::new(0);
    let render = move |fields: &OwnFields| {
        count.set(count.get() + 1);
        text(format!("host {} rendering {}", value(fields, "host"), count.get()))
    };
    assert_eq!(finding(entry("/page", 1), render), None);
}

#[test]
fn a_personal_response_is_a_finding() {
    let render = |_: &OwnFields| Replayed {
        status: 200,
        personal_because: Some("a session"),
        body: b"same".to_vec(),
    };
    assert_eq!(finding(entry("/page", 1), render).unwrap().by, "a session");
}

#[test]
fn a_status_that_depends_on_the_request_is_a_finding() {
    let render = |fields: &OwnFields| {
        let status = if value(fields, "cookie") == "none" { 403 } else { 200 };
        Replayed { status, personal_because: None, body: Vec::new() }
    };
    assert_eq!(finding(entry("/page", 1), render).unwrap().excerpt, "status 200 or 403");
}

#[test]
fn cookies_are_altered_and_removed_by_name() {
    let altered = |value: &[u8]| with_altered_cookies(&(b"Cookie".to_vec(), value.to_vec())).1;
    let cookies = b"a=1; b=two=2;c";
    assert_eq!(altered(cookies), b"a=outboard-audit; b=outboard-audit; c=outboard-audit");
    assert_eq!(without_cookie(cookies, b"b"), b"a=1; c");
    assert_eq!(without_cookie(b"a=1", b"a"), b"");
}

#[test]
fn the_configured_share_of_hits_is_examined() {
    let audit = Audit::new("site", 250_000, &Arc::default());
    let due = (0..100).filter(|_| audit.choose(0).1).count();
    assert_eq!(due, 25);
    let off = Audit::new("site", 0, &Arc::default());
    assert!((0..100).all(|_| !off.choose(0).1));
}

#[test]
fn one_hit_is_examined_at_a_time() {
    run(async {
        let audit = Audit::new("site", 1_000_000, &Arc::default());
        let hit = || {
            let page = Page { fields: Vec::new(), render: Box::new(|_| text(String::new())) };
            audit.sample(&entry("/page", 1), || Some(Rc::new(page)))
        };
        let first = hit();
        assert!(first.is_some() && hit().is_none());
        assert_eq!(audit.run(&first.unwrap()).await, None);
    })
    .unwrap();
}

#[test]
fn an_audit_on_demand_examines_each_url_once() {
    run(async {
        let audit = Audit::new("site", 0, &Arc::default());
        for number in [1, 2, 3, 3, 3] {
            let path = format!("/{number}");
            let render = |fields: &OwnFields| text(format!("for {}", value(fields, "cookie")));
            let page = Page { fields: owned(REQUEST), render: Box::new(render) };
            assert!(audit.sample(&entry(&path, 1), || Some(Rc::new(page))).is_none());
        }
        let (examined, findings) = audit.examine_samples(Some(2)).await;
        let urls: Vec<&str> = findings.iter().map(|finding| &*finding.url).collect();
        assert_eq!((examined, &urls[..]), (2, &["http://a.test/3", "http://a.test/2"][..]));
        assert_eq!(audit.examine_samples(None).await.0, 3);
        assert!(!audit.has_removed(b"/page"), "a report removes nothing");
    })
    .unwrap();
}

#[test]
fn frequent_hits_are_sampled_once_a_second() {
    let audit = Audit::new("site", 0, &Arc::default());
    let sampled = |now_ms: u64, hits: usize| (0..hits).filter(|_| audit.choose(now_ms).0).count();
    assert_eq!(sampled(5_000, SAMPLES_MAX), SAMPLES_MAX, "the first ones");
    assert_eq!(sampled(5_000, 10_000), 0);
    assert_eq!(sampled(5_999, 10_000), 0);
    assert_eq!(sampled(6_000, 10_000), 1);
    // Hits of a small site are all remembered.
    assert_eq!((7..20).map(|second| sampled(second * 1_000, 1)).sum::<usize>(), 13);
}
