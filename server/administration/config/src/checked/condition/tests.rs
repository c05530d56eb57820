use crate::checked::testing::{APP, assert_error, site};
use crate::{ConditionSet, Kind};

fn conditions(text: &str) -> String {
    format!("{APP}{text}\n[[app.site.rewrite]]\nmatch = \"^/a\"\nstatus = 404\n")
}

/// The set of the conditions with these indices.
fn set(indices: &[usize]) -> ConditionSet {
    let mut set = ConditionSet::default();
    indices.iter().for_each(|index| set.insert(*index));
    set
}

#[test]
fn a_condition_comes_after_those_that_it_needs() {
    let app = site(
        "[app.site.condition.a]\nif = [\"b\", \"!c\"]\n[app.site.condition.b]\nany = [\"c\", \"d\"]\n\
         [app.site.condition.c]\nmethod = \"POST\"\n[app.site.condition.d]\nhost = \"m.test\"\n\
         [[app.site.rewrite]]\nmatch = \"^/\"\nstatus = 404\nif = [\"a\", \"!d\"]\n",
    );
    // c, d, b, a
    let [c, d, b, a] = &app.conditions[..] else { panic!("{:?}", app.conditions) };
    assert_eq!((c.methods[0].as_str(), d.hosts.len()), ("POST", 1));
    assert!(b.any[0].holds(set(&[0])) && b.any[1].holds(set(&[1])) && !b.any[1].holds(set(&[0])));
    assert!(a.all.holds(set(&[2])) && !a.all.holds(set(&[0, 2])) && !a.all.holds(set(&[])));
    let rule = app.rewrites[0].requirement;
    assert!(!rule.holds(ConditionSet::UNKNOWN) && !b.any[0].holds(ConditionSet::UNKNOWN));
    assert!(crate::Requirement::default().holds(ConditionSet::UNKNOWN));
    assert!(rule.holds(set(&[3])) && !rule.holds(set(&[1, 3])) && !rule.holds(set(&[0])));
}

#[test]
fn a_star_stands_for_any_characters() {
    let app = site(
        "[app.site.condition.a]\nheader = { Referer = [\"https://a.test/*\", \"*bot*\"] }\n\
         cookie = { beta = \"*\" }\nquery = { x = \"a.c\" }\n",
    );
    let [one] = &app.conditions[..] else { panic!() };
    let matches = |text: &str| one.headers[0].1.matches(text.as_bytes());
    assert!(matches("https://A.test/") && matches("HTTPS://a.test/x\ny") && matches("GoogleBot/1"));
    assert!(
        !matches("http://a.test/") && !matches("https://a.test") && !matches("xhttps://a.test/")
    );
    assert!(one.cookies[0].1.matches(b"") && one.cookies[0].1.matches(b"\xff"));
    let query = |text: &str| one.query[0].1.matches(text.as_bytes());
    assert!(query("a.c") && !query("abc") && !query("A.c"));
}

#[test]
fn what_cannot_hold_is_reported() {
    let one = |keys: &str| conditions(&format!("[app.site.condition.a]\n{keys}"));
    assert_error(&one("if = \"b\""), Kind::Conflict, 4, "no condition `b`");
    assert_error(&one("if = \"!a\""), Kind::Conflict, 3, "needs itself");
    assert_error(&one(""), Kind::Conflict, 3, "has no key");
    assert_error(&one("method = \"post\""), Kind::BadValue, 4, "capitals");
    assert_error(&one("country = \"DE\""), Kind::Conflict, 4, "country_database");
    assert_error(&one("country = \"Germany\""), Kind::BadValue, 4, "two capital letters");
    assert_error(&one("client = \"home\""), Kind::BadValue, 4, "one of: cloudflare");
    assert_error(&one("if = \"!!b\""), Kind::BadValue, 4, "not the name of a condition");
    let closed = "[[app.site.access]]\nif = \"!b\"\nallow = [\"10.0.0.1\"]\n";
    let paths = "[app.site.condition.a]\npath = \"/admin/\"\n[app.site.condition.b]\nany = \"a\"\n";
    assert_error(&format!("{APP}{paths}{closed}"), Kind::Conflict, 8, "every spelling");
    let rule = format!("{APP}[[app.site.headers]]\nif = \"mobile\"\nset = {{ A = \"1\" }}\n");
    assert_error(&rule, Kind::Conflict, 4, "app.site.condition.mobile");
}

#[test]
fn a_database_that_is_none_is_reported() {
    let text = format!("country_database = \"countries.mmdb\"\n{APP}");
    assert_error(&text, Kind::Path, 1, "not a database of countries");
}

#[test]
fn a_response_has_a_status_and_a_text() {
    let rule = |keys: &str| format!("{APP}[[app.site.rewrite]]\nmatch = \"^/a\"\n{keys}\n");
    assert_error(&rule("status = 200"), Kind::Conflict, 5, "200 with a `body`");
    assert_error(&rule("to = \"/b\"\nbody = \"x\""), Kind::Conflict, 6, "only a response");
    assert_error(&rule("status = 204\nbody = \"x\""), Kind::Conflict, 5, "not a valid status");
}
