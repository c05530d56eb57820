//! `$_GET`, `$_POST`, `$_COOKIE` and `$_REQUEST`, well-formed or not.

use crate::pair;
use outboard_e2e::Request;

#[test]
fn names_with_brackets_become_arrays() {
    let query = "/input.php?a[]=1&a[]=2&b[x][y]=3&b[x][]=4&c[=5&d.e=6&f g=7&h[i]j=8&k[]";
    pair().same(&Request::get(&query.replace(' ', "+"))).expect(200).holding("\"y\": \"3\"");
}

#[test]
fn escapes_are_decoded_once() {
    let query = "/input.php?a=%2B+%20%25%32%30&%62=%E2%82%AC&c=%ff%fe&d=%&e=%4&f=a%00b&=none&g&&h=";
    pair().same(&Request::get(query)).expect(200);
}

#[test]
fn later_values_win_and_post_goes_before_get() {
    let request = Request::form("/input.php?a=get&b=get&b=last", &[("a", "post"), ("c", "post")])
        .header("Cookie", "a=cookie; d=cookie");
    pair().same(&request).expect(200).holding("\"b\": \"last\"");
}

#[test]
fn forms_are_parsed_with_any_spelling_of_their_type() {
    for content_type in [
        "application/x-www-form-urlencoded; charset=UTF-8",
        "APPLICATION/X-WWW-FORM-URLENCODED",
        "application/x-www-form-urlencoded;",
        "application/x-www-form-urlencoded, text/plain",
        " application/x-www-form-urlencoded",
    ] {
        pair().same(&Request::post("/input.php", content_type, "a=1&b[]=2")).expect(200);
    }
}

#[test]
fn bodies_of_other_types_and_methods_are_not_parsed() {
    pair().same(&Request::post("/input.php", "application/json", "{\"a\":1}")).expect(200);
    pair().same(&Request::post("/input.php", "text/plain", "a=1")).expect(200);
    pair().same(&Request::new("POST", "/input.php").body("a=1")).expect(200);
    let form = "application/x-www-form-urlencoded";
    for method in ["PUT", "PATCH", "DELETE", "GET"] {
        let request = Request::new(method, "/input.php").header("Content-Type", form).body("a=1");
        pair().same(&request).expect(200).holding("_POST []");
    }
}

#[test]
fn broken_forms_give_what_can_be_read() {
    let form = "application/x-www-form-urlencoded";
    for body in ["", "&&&", "=", "a", "a=%", "%00=1", "a[b=1", "a[[]]=1", "\u{0}a=1", "a=1;b=2"] {
        pair().same(&Request::post("/input.php", form, body)).expect(200);
    }
    pair().same(&Request::post("/input.php", form, b"\xff\xfe=\x80".to_vec())).expect(200);
}

#[test]
fn cookies_are_read_as_php_reads_them() {
    for cookie in [
        "a=1; b=two%20words; c=x=y",
        "a=1;a=2",
        "  spaced = value ; e",
        "a[x]=1; a[y]=2; dotted.name=3; PHPSESSID=",
        "plus=a+b; quoted=\"q\"; utf=\u{fc}",
        ";;;=;",
    ] {
        pair().same(&Request::get("/input.php").header("Cookie", cookie)).expect(200);
    }
}

#[test]
fn more_than_max_input_vars_are_left_out() {
    let many: Vec<String> = (0..1100).map(|number| format!("v{number}=1")).collect();
    pair().same(&Request::get("/input.php?a=1")).expect(200);
    let form = "application/x-www-form-urlencoded";
    let response = pair().same(&Request::post("/input.php", form, many.join("&"))).expect(200);
    assert!(response.text().contains("v999") && !response.text().contains("v1001"));
}

#[test]
fn deep_nesting_is_cut_where_php_cuts_it() {
    let deep = format!("a{}=1", "[x]".repeat(70));
    let form = "application/x-www-form-urlencoded";
    pair().same(&Request::post("/input.php", form, deep)).expect(200);
}

#[test]
fn user_ini_limits_apply_to_its_folder() {
    pair().same(&Request::get("/small/limits.php")).expect(200).holding("max_input_vars=10");
    pair().same(&Request::get("/limits.php")).expect(200).holding("max_input_vars=1000");
    let many: Vec<String> = (0..20).map(|number| format!("v{number}=1")).collect();
    let form = "application/x-www-form-urlencoded";
    pair().same(&Request::post("/small/input.php", form, many.join("&"))).expect(200);
}

#[test]
fn a_body_beyond_post_max_size_is_not_parsed() {
    let form = "application/x-www-form-urlencoded";
    let body = format!("a={}", "x".repeat(40 << 20));
    pair().same(&Request::post("/input.php", form, body)).expect(200).holding("_POST []");
    let body = format!("a={}", "x".repeat(3000));
    pair().same(&Request::post("/small/input.php", form, body)).expect(200);
}
